import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, div, form, h, input, p } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { Action, Ago, block, empty, Field, pageHead, sheet, showMessage, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { to } from "../router.ts";
import { call, isReadOnly, org, session } from "../session.ts";
import { AppPage } from "./app.ts";

/** `#/apps`, `#/apps/<name>[/<tab>]`. */
export function Page({ path }: PageProps): VNode {
  const [app, tab = ""] = path;
  return app ? h(AppPage, { app_name: app, tab, key: app }) : h(AppList, {});
}

function AppList(): VNode {
  const { machines, counts } = useCell(fleet);
  const readOnly = isReadOnly(useCell(session));
  const answer = useShared(
    (signal) => call("GET /v1/apps", { query: { org_slug: org() }, signal }),
    [machines.size, counts?.machines],
  );
  return div(
    pageHead("Apps"),
    readOnly ? null : h(NewApp, { onMade: answer.again }),
    when(answer, ({ apps }) =>
      apps.length === 0
        ? empty(
            "No apps yet.",
            p("An app is a name that machines, secrets and addresses belong to. Make one above, or on a terminal:"),
            block("hangar apps create hello"),
          )
        : sheet(
            "Apps",
            ["app", "status", "machines", "volumes", "network", "made"],
            apps.map((app) => ({
              key: app.id,
              cells: [
                a({ href: to("apps", app.name) }, app.name),
                app.status,
                a({ href: machinesOf(app.name) }, String(app.machine_count)),
                String(app.volume_count),
                app.network,
                h(Ago, { ms: app.created_at }),
              ],
            })),
          ),
    ),
  );
}

const machinesOf = (app_name: string): string => `${to("machines")}?q=${encodeURIComponent(app_name)}`;

function NewApp({ onMade }: { onMade: () => void }): VNode {
  const [name, setName] = useState("");
  const make = async (): Promise<void> => {
    const app = await call("POST /v1/apps", { body: { app_name: name.trim(), org_slug: org() } });
    setName("");
    showMessage(`Created app ${app.name}.`);
    onMade();
  };
  return form(
    { class: "row-form", onSubmit: (event) => event.preventDefault() },
    h(Field, {
      name: "New app",
      children: (id) =>
        input({
          id,
          type: "text",
          placeholder: "name",
          autocomplete: "off",
          value: name,
          onInput: (event) => setName(event.currentTarget.value),
        }),
    }),
    h(Action, { name: "Create", class: "primary", disabled: name.trim() === "", work: make }),
  );
}
