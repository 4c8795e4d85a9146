/** What a person does with an app: each action shows first what will happen. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { ACTIONS, perform } from "../actions.ts";
import { useRefusal } from "../allowed.ts";
import type { FleetMachine } from "../fleet.ts";
import { button, div, h, p } from "../html.ts";
import { confirmed } from "../parts/dialog.ts";
import { plural } from "../parts/format.ts";
import { RequestView, requestTexts } from "../parts/request.ts";
import { DeployDialog } from "./app-deploy.ts";
import { RollbackDialog } from "./app-rollback.ts";
import { ScaleDialog } from "./app-scale.ts";
import { type AppStatus, useMachines } from "./app-tab.ts";

const DIALOGS = [
  { name: "Deploy", view: DeployDialog, needs_release: false },
  { name: "Roll back", view: RollbackDialog, needs_release: true },
  { name: "Scale", view: ScaleDialog, needs_release: true },
] as const;

const NO_RELEASE = "No release yet: deploy first";

export function AppActions({ app_name, status }: { app_name: string; status: AppStatus | undefined }): VNode {
  const [open, setOpen] = useState<(typeof DIALOGS)[number]>();
  const machines = useMachines(app_name);
  const refusal = useRefusal(app_name);
  const running = machines.filter(({ state }) => state === "started");
  const act = (name: string, reason: string | undefined, onClick: () => void, style = ""): VNode =>
    button({ type: "button", key: name, class: style, disabled: reason !== undefined, title: reason, onClick }, name);
  return div(
    { class: "actions" },
    ...DIALOGS.map((one, index) => {
      const reason = refusal ?? (one.needs_release && !status?.release ? NO_RELEASE : undefined);
      return act(one.name, reason, () => setOpen(one), index === 0 ? "primary" : "");
    }),
    act("Restart", refusal ?? (running.length === 0 ? "No machine is running" : undefined), () => {
      void restart(app_name, running);
    }),
    open && status ? h(open.view, { app_name, status, onClose: () => setOpen(undefined) }) : null,
  );
}

async function restart(app_name: string, running: readonly FleetMachine[]): Promise<void> {
  const action = ACTIONS.find(({ name }) => name === "Restart");
  const [first] = running;
  if (!action || !first) return;
  const one = running.length === 1;
  const texts = requestTexts("POST /v1/apps/:app_name/machines/:machine_id/restart", {
    params: { app_name, machine_id: first.id },
    hangar: running.map(({ id }) => `hangar machines restart ${id} --app ${app_name}`).join("\n"),
  });
  const text = div(
    p(
      `${plural(running.length, "running machine")} ${one ? "stops and starts" : "stop and start"} again, with the same image and config; requests wait or go to the others meanwhile.`,
    ),
    h(RequestView, { texts }),
  );
  if (await confirmed(`Restart ${app_name}?`, text, "Restart", false)) await perform(action, running);
}
