import type { Machine } from "#client/api.ts";
import { type Context, type Input, textOption, type Verb } from "../verb.ts";
import { APP, type Found, findMachine, MACHINE, NONCE } from "./find.ts";
import { andWait } from "./follow.ts";

const DETACH: readonly [string, string] = ["--detach", "do not wait until it is done"];

/** Commands that request a state and wait until the machine has reached it. */
function lifecycle(
  message: string,
  summary: string,
  states: readonly string[],
  request: (context: Context, found: Found, input: Input) => Promise<unknown>,
  more: Verb["options"] = [],
): Verb {
  const verb = message.split(" ")[1] ?? "";
  return {
    words: message,
    summary,
    arguments: [MACHINE],
    options: [APP, NONCE, DETACH, ...more],
    completes: "machines",
    examples: [`hangar ${message} $MACHINE${verb === "destroy" ? " --force" : ""}`],
    async run(context, input) {
      const found = await findMachine(context, input);
      const { machine_id } = found.params;
      if (input.options["detach"] === true) {
        await request(context, found, input);
        return { data: { id: machine_id, asked: verb }, text: `requested ${verb} of ${machine_id}` };
      }
      const machine = await andWait(context, found, states, () => request(context, found, input));
      return { data: machine, text: `${machine.id} (${machine.name}) is ${machine.state}${whyOf(machine, states)}` };
    },
  };
}

/** The reason in the event: why a machine is frozen in memory, stopped instead of suspended, or booted cold. */
function whyOf({ state, events }: Machine, [wanted = ""]: readonly string[]): string {
  if (!["suspended", "started"].includes(wanted)) return "";
  const why = events.find(({ status }) => status === state)?.request?.["reason"];
  return typeof why === "string" ? `: ${why}` : "";
}

const STOP: NonNullable<Verb["options"]> = [
  ["--signal <name>", "the signal to send (default: SIGINT)"],
  ["--timeout <seconds>", "how long to wait before SIGKILL"],
];

export const machinesStart = lifecycle(
  "machines start",
  "Start a machine",
  ["started"],
  ({ client }, { params, headers }) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/start", { params, headers }),
);

export const machinesStop = lifecycle(
  "machines stop",
  "Stop a machine: its stop signal, then SIGKILL",
  ["stopped"],
  ({ client }, { params, headers }, input) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/stop", {
      params,
      headers,
      body: { signal: textOption(input, "signal"), timeout: textOption(input, "timeout") },
    }),
  STOP,
);

export const machinesSuspend = lifecycle(
  "machines suspend",
  "Suspend a machine with its memory",
  ["suspended", "stopped"],
  ({ client }, { params, headers }) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/suspend", { params, headers }),
);

export const machinesRestart = lifecycle(
  "machines restart",
  "Stop and start a machine",
  ["started"],
  ({ client }, { params, headers }, input) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/restart", {
      params,
      headers,
      query: { signal: textOption(input, "signal"), timeout: textOption(input, "timeout") },
    }),
  STOP,
);

export const machinesDestroy = lifecycle(
  "machines destroy",
  "Destroy a machine; this cannot be undone",
  ["destroyed"],
  ({ client }, { params, headers }, input) =>
    client.call("DELETE /v1/apps/:app_name/machines/:machine_id", {
      params,
      headers,
      query: {
        force: input.options["force"] === true ? true : undefined,
        kill: input.options["kill"] === true ? true : undefined,
      },
    }),
  [
    ["--force", "even if running: stop signal, then SIGKILL after its stop timeout"],
    ["--kill", "even if running: SIGKILL immediately"],
  ],
);

/** Commands that take effect at once. */
function atOnce(
  message: string,
  summary: string,
  done: string,
  request: (context: Context, found: Found) => Promise<unknown>,
): Verb {
  return {
    words: message,
    summary,
    arguments: [MACHINE],
    options: [APP, NONCE],
    completes: "machines",
    examples: [`hangar ${message} $MACHINE`],
    async run(context, input) {
      const found = await findMachine(context, input);
      const data = await request(context, found);
      return { data, text: `${found.params.machine_id} ${done}` };
    },
  };
}

export const machinesCordon = atOnce(
  "machines cordon",
  "Send no more requests to a machine",
  "gets no more requests",
  ({ client }, { params, headers }) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/cordon", { params, headers }),
);

export const machinesUncordon = atOnce(
  "machines uncordon",
  "Send requests to a machine again",
  "gets requests again",
  ({ client }, { params, headers }) =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id/uncordon", { params, headers }),
);
