/** What can be done to machines, by name: for one or for many. */
import { showMessage } from "./parts/basics.ts";
import { confirmed } from "./parts/dialog.ts";
import { plural } from "./parts/format.ts";
import { call } from "./session.ts";

export interface Target {
  id: string;
  name: string;
  app_name: string;
  state: string;
}

interface MachineAction {
  name: string;
  /** States in which the action is possible. */
  from: readonly string[];
  danger?: true;
  run: (params: { app_name: string; machine_id: string }) => Promise<unknown>;
}

const ANY = ["created", "started", "stopped", "suspended", "failed"];
const BASE = "/v1/apps/:app_name/machines/:machine_id";

export const ACTIONS: readonly MachineAction[] = [
  {
    name: "Start",
    from: ["created", "stopped", "suspended", "failed"],
    run: (params) => call(`POST ${BASE}/start`, { params }),
  },
  {
    name: "Stop",
    from: ["started", "suspended", "failed", "restarting"],
    run: (params) => call(`POST ${BASE}/stop`, { params, body: {} }),
  },
  { name: "Suspend", from: ["started"], run: (params) => call(`POST ${BASE}/suspend`, { params }) },
  { name: "Restart", from: ANY, run: (params) => call(`POST ${BASE}/restart`, { params, query: {} }) },
  { name: "Cordon", from: ANY, run: (params) => call(`POST ${BASE}/cordon`, { params }) },
  { name: "Uncordon", from: ANY, run: (params) => call(`POST ${BASE}/uncordon`, { params }) },
  {
    name: "Destroy",
    from: [...ANY, "starting", "stopping", "suspending", "restarting", "replacing"],
    danger: true,
    run: (params) => call(`DELETE ${BASE}`, { params, query: { force: true } }),
  },
];

/** Requests in parallel; limited to spare the platform. */
const PARALLEL = 8;

/** Performs the action on all machines in a suitable state, and reports the results. */
export async function perform(action: MachineAction, targets: readonly Target[]): Promise<void> {
  const ready = targets.filter(({ state }) => action.from.includes(state));
  if (ready.length === 0) return showMessage(`None of the selected machines can ${action.name.toLowerCase()} now.`);
  if (action.danger && !(await certain(action, ready))) return;
  const failures: unknown[] = [];
  const queue = [...ready];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      await action
        .run({ app_name: next.app_name, machine_id: next.id })
        .catch((thrown: unknown) => failures.push(thrown));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  const done = ready.length - failures.length;
  if (failures.length > 0)
    showMessage(`${action.name}: ${failures.length} of ${ready.length} did not work`, failures[0]);
  else if (ready.length > 1) showMessage(`${action.name}: requested for ${plural(done, "machine")}.`);
}

async function certain({ name }: MachineAction, targets: readonly Target[]): Promise<boolean> {
  const [first] = targets;
  const what = targets.length === 1 && first ? first.name : plural(targets.length, "machine");
  return await confirmed(
    `${name} ${what}?`,
    "Data outside of volumes is deleted permanently. A running machine is killed.",
    `${name} ${targets.length === 1 ? "it" : "them"}`,
  );
}
