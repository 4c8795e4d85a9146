import type { ComponentType, VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, div, form, h, input, nav, p } from "../html.ts";
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
  tabs,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { confirmed } from "../parts/dialog.ts";
import { icon } from "../parts/icon.ts";
import { Logs } from "../parts/logs.ts";
import { go, to } from "../router.ts";
import { call, isReadOnly, session } from "../session.ts";
import { AppServices } from "./app-services.ts";

const SHOWN = 100;

interface TabProps {
  app_name: string;
  readOnly: boolean;
}

const TABS: readonly { id: string; title: string; view: ComponentType<TabProps> }[] = [
  { id: "", title: "Machines", view: Machines },
  { id: "services", title: "Services", view: AppServices },
  { id: "logs", title: "Logs", view: AppLogs },
  { id: "secrets", title: "Secrets", view: Secrets },
  { id: "releases", title: "Releases", view: Releases },
];

export function AppPage({ app_name, tab }: { app_name: string; tab: string }): VNode {
  const readOnly = isReadOnly(useCell(session));
  const shown = TABS.find(({ id }) => id === tab) ?? TABS[0];
  const remove = async (): Promise<void> => {
    if (!(await confirmed(`Delete ${app_name}?`, "Its machines and secrets go with it, for good.", "Delete it")))
      return;
    await call("DELETE /v1/apps/:app_name", { params: { app_name }, query: { force: true } });
    say(`${app_name} is deleted.`);
    go("apps");
  };
  const make = `${to("machines", "new")}?app=${encodeURIComponent(app_name)}`;
  return div(
    nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("apps") }, "Apps")),
    pageHead(
      app_name,
      readOnly ? null : a({ class: "button primary", href: make }, icon("plus"), "New machine"),
      readOnly ? null : h(Action, { name: "Delete", class: "danger", work: remove }),
    ),
    tabs(
      "About this app",
      TABS.map(({ id, title }) => ({ title, href: to("apps", app_name, ...(id ? [id] : [])), here: id === shown?.id })),
    ),
    shown ? h(shown.view, { app_name, readOnly, key: shown.id }) : null,
  );
}

function Machines({ app_name }: TabProps): VNode {
  const { machines } = useCell(fleet);
  const own = [...machines.values()].filter((machine) => machine.app_name === app_name);
  if (own.length === 0) return empty("No machines yet.", block(`hangar machines run hangar/hello --app ${app_name}`));
  return div(
    sheet(
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
    own.length > SHOWN
      ? p(a({ href: `${to("machines")}?q=${encodeURIComponent(app_name)}` }, `All ${own.length}`))
      : null,
  );
}

/** Logs of all machines of the app, in one stream. */
function AppLogs({ app_name }: TabProps): VNode {
  return h(Logs, {
    source: { app_name },
    nothing: empty("No log lines yet.", p("The stdout and stderr of its machines appear here.")),
  });
}

function Releases({ app_name }: TabProps): VNode {
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: { limit: 50 }, signal }),
    [app_name],
  );
  return div(
    when(answer, ({ releases }) =>
      releases.length === 0
        ? empty("No releases yet.", p("Each ", code("hangar deploy"), " is one; an earlier one can be brought back."))
        : sheet(
            "Releases",
            ["version", "status", "image", "digest", "what", "strategy", "by", "when"],
            releases.map((release) => ({
              key: String(release.version),
              cells: [
                `v${release.version}`,
                badge(release.status),
                release.image === null ? "" : code(release.image),
                shortDigest(release.image_digest),
                release.description,
                release.strategy,
                release.created_by,
                h(Ago, { ms: Date.parse(release.created_at) }),
              ],
            })),
          ),
    ),
  );
}

const shortDigest = (digest: string | null): VNode | string =>
  digest === null ? "" : code({ class: "dim", title: digest }, digest.replace("sha256:", "").slice(0, 12));

function Secrets({ app_name, readOnly }: TabProps): VNode {
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
    p({ class: "dim" }, "Machines get them as environment variables when they start. Their values are never shown."),
    readOnly ? null : h(NewSecret, { app_name, onSet: answer.again }),
    when(answer, ({ secrets }) =>
      secrets.length === 0
        ? p({ class: "dim" }, "None yet. ", code(`hangar secrets set NAME=value --app ${app_name}`))
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
