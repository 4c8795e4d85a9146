import type { VNode } from "preact";
import { a, code, div, h, p } from "../html.ts";
import { Action, badge, block, card, empty, sheet, showMessage, useAnswer, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { go, to } from "../router.ts";
import { call } from "../session.ts";
import { type AppTabProps, useMachines } from "./app-tab.ts";

/** Volumes of the app. */
export function AppStorage({ app_name }: AppTabProps): VNode {
  const machines = useMachines(app_name);
  const names = new Map(machines.map(({ id, name }) => [id, name]));
  const answer = useShared(
    (signal) => call("GET /v1/apps/:app_name/volumes", { params: { app_name }, query: {}, signal }),
    [app_name],
  );
  return div(
    when(answer, (volumes) =>
      volumes.length === 0
        ? empty(
            "No volumes.",
            p("A volume is a disk that outlives its machine."),
            block(`hangar volumes create data --app ${app_name}`),
          )
        : sheet(
            "Volumes",
            ["name", "state", "size", "region", "machine"],
            volumes.map(({ id, name, state, size_gb, region, attached_machine_id }) => ({
              key: id,
              cells: [
                a({ href: to("volumes", app_name, id) }, name),
                badge(state),
                `${size_gb} GB`,
                region,
                attached_machine_id
                  ? a(
                      { href: to("machines", app_name, attached_machine_id) },
                      names.get(attached_machine_id) ?? attached_machine_id,
                    )
                  : "not attached",
              ],
            })),
          ),
    ),
  );
}

const CONFIGS = 100;

/** The different configs, each with the first machine that has it. */
function configs(machines: readonly { name: string; config?: object | undefined }[]): VNode {
  const all = new Map(machines.toReversed().map(({ config, name }) => [JSON.stringify(config, null, 2), name]));
  if (all.size === 0) return p({ class: "dim" }, "It has no machines.");
  return div(
    p({ class: "dim" }, all.size === 1 ? "All machines have this config." : "The different configs of its machines."),
    ...[...all].map(([text, name]) => div({ key: name }, all.size > 1 ? p(code(name)) : null, block(text))),
  );
}

/** The machines' configs as they are, what exports them as a file, and the end of the app. */
export function AppSettings({ app_name, readOnly }: AppTabProps): VNode {
  // The organization's list has the most important fields of a config only.
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/machines", { params: { app_name }, query: { limit: CONFIGS }, signal }),
    [app_name],
  );
  const remove = async (): Promise<void> => {
    const text = "Its machines, volumes and secrets are deleted with it, permanently.";
    if (!(await confirmed(`Delete ${app_name}?`, text, "Delete it"))) return;
    await call("DELETE /v1/apps/:app_name", { params: { app_name }, query: { force: true } });
    showMessage(`${app_name} is deleted.`);
    go("apps");
  };
  return div(
    card(
      "Export",
      p("The app as a desired-state file, to keep in a repository and apply again:"),
      block(`hangar export ${app_name}`),
    ),
    card("Machine config", when(answer, configs)),
    readOnly
      ? null
      : card(
          "Delete",
          p("An app that is deleted cannot be restored."),
          p(h(Action, { name: "Delete app", class: "danger", work: remove })),
        ),
  );
}
