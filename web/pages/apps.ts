import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, div, form, h, input, nav, p } from "../html.ts";
import type { PageProps } from "../pages.ts";
import {
  Action,
  Ago,
  badge,
  block,
  card,
  empty,
  Field,
  pageHead,
  say,
  sheet,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { confirmed } from "../parts/dialog.ts";
import { icon } from "../parts/icon.ts";
import { go, to } from "../router.ts";
import { call, isReadOnly, org, session } from "../session.ts";

const SHOWN = 100;

export function Page({ path }: PageProps): VNode {
  const [app] = path;
  return app ? h(AppPage, { app_name: app, key: app }) : h(AppList, {});
}

function AppList(): VNode {
  const { machines } = useCell(fleet);
  const readOnly = isReadOnly(useCell(session));
  const answer = useAnswer((signal) => call("GET /v1/apps", { query: { org_slug: org() }, signal }), [machines.size]);
  return div(
    pageHead("Apps"),
    readOnly ? null : h(NewApp, { onMade: answer.again }),
    when(answer, ({ apps }) =>
      apps.length === 0
        ? empty(
            "No apps yet.",
            p("An app is a name that machines, secrets and addresses belong to. Make one above, or on a terminal:"),
            block("npx hangar apps create hello"),
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
    say(`${app.name} is made.`);
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

function AppPage({ app_name }: { app_name: string }): VNode {
  const { machines } = useCell(fleet);
  const readOnly = isReadOnly(useCell(session));
  const own = [...machines.values()].filter((machine) => machine.app_name === app_name);
  const remove = async (): Promise<void> => {
    if (!(await confirmed(`Delete ${app_name}?`, "Its machines and secrets go with it, for good.", "Delete it")))
      return;
    await call("DELETE /v1/apps/:app_name", { params: { app_name }, query: { force: true } });
    say(`${app_name} is deleted.`);
    go("apps");
  };
  return div(
    nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("apps") }, "Apps")),
    pageHead(
      app_name,
      readOnly
        ? null
        : a(
            { class: "button primary", href: `${to("machines", "new")}?app=${encodeURIComponent(app_name)}` },
            icon("plus"),
            "New machine",
          ),
      readOnly ? null : h(Action, { name: "Delete", class: "danger", work: remove }),
    ),
    card(
      "Machines",
      own.length === 0
        ? empty("None yet.", block(`npx hangar machines run hangar/hello --app ${app_name}`))
        : sheet(
            "Machines",
            ["state", "name", "region", "changed"],
            own.slice(0, SHOWN).map((machine) => ({
              key: machine.id,
              cells: [
                badge(machine.state),
                a({ href: to("machines", app_name, machine.id) }, machine.name),
                machine.region,
                h(Ago, { ms: Date.parse(machine.updated_at) }),
              ],
            })),
          ),
      own.length > 100
        ? p(a({ href: `${to("machines")}?q=${encodeURIComponent(app_name)}` }, `All ${own.length}`))
        : null,
    ),
    h(Secrets, { app_name, readOnly }),
  );
}

function Secrets({ app_name, readOnly }: { app_name: string; readOnly: boolean }): VNode {
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/secrets", { params: { app_name }, signal }),
    [app_name],
  );
  const remove = (secret_name: string) => async (): Promise<void> => {
    if (!(await confirmed(`Remove ${secret_name}?`, "Machines that start from now on do not have it.", "Remove it")))
      return;
    await call("DELETE /v1/apps/:app_name/secrets/:secret_name", { params: { app_name, secret_name } });
    answer.again();
  };
  return card(
    "Secrets",
    p(
      { class: "dim" },
      "Machines get them as environment variables when they start. Their values are never shown again.",
    ),
    readOnly ? null : h(NewSecret, { app_name, onSet: answer.again }),
    when(answer, ({ secrets }) =>
      secrets.length === 0
        ? p({ class: "dim" }, "None yet. ", code(`npx hangar secrets set NAME=value --app ${app_name}`))
        : sheet(
            "Secrets",
            ["name", "digest", "changed", ...(readOnly ? [] : ["remove"])],
            secrets.map(({ name, digest, updated_at }) => ({
              key: name,
              cells: [
                code(name),
                code({ class: "dim" }, digest.slice(0, 16)),
                h(Ago, { ms: Date.parse(updated_at) }),
                ...(readOnly ? [] : [h(Action, { name: "Remove", work: remove(name) })]),
              ],
            })),
          ),
    ),
  );
}

function NewSecret({ app_name, onSet }: { app_name: string; onSet: () => void }): VNode {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const set = async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/secrets", { params: { app_name }, body: { values: { [name]: value } } });
    setName("");
    setValue("");
    say("Set. Machines have it after their next start.");
    onSet();
  };
  return form(
    { class: "row-form", onSubmit: (event) => event.preventDefault() },
    h(Field, {
      name: "Name",
      children: (id) =>
        input({
          id,
          type: "text",
          placeholder: "DATABASE_URL",
          autocomplete: "off",
          value: name,
          onInput: (event) => setName(event.currentTarget.value),
        }),
    }),
    h(Field, {
      name: "Value",
      children: (id) =>
        input({
          id,
          type: "password",
          autocomplete: "off",
          value,
          onInput: (event) => setValue(event.currentTarget.value),
        }),
    }),
    h(Action, { name: "Set", class: "primary", disabled: name === "" || value === "", work: set }),
  );
}
