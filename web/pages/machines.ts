import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ACTIONS, perform } from "../actions.ts";
import { useCell } from "../cell.ts";
import { type FleetMachine, fleet, shownState } from "../fleet.ts";
import { a, button, code, div, h, input, p, span } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { Action, Ago, badge, block, empty, loading, pageHead, problem } from "../parts/basics.ts";
import { plural } from "../parts/format.ts";
import { icon } from "../parts/icon.ts";
import { type Column, Rows, type Sorting, sorted } from "../parts/rows.ts";
import { remember, to } from "../router.ts";
import { isReadOnly, session } from "../session.ts";
import { CreateMachine } from "./create.ts";
import { MachinePage } from "./machine.ts";
import { sizeOf } from "./machine-words.ts";

/** `#/machines`, `#/machines/new`, `#/machines/<app>/<id>[/<tab>]`. */
export function Page({ path, query }: PageProps): VNode {
  const [app, id, tab] = path;
  if (app === "new" && !id) return h(CreateMachine, { app: query.get("app") ?? "" });
  if (app && id) return h(MachinePage, { app_name: app, machine_id: id, tab: tab ?? "", key: id });
  return h(MachineTable, { query });
}

const imageOf = ({ config }: FleetMachine): string => (typeof config["image"] === "string" ? config["image"] : "");

/** Without the registry, which is long and mostly the same. */
const shortImage = (machine: FleetMachine): string => imageOf(machine).replace(/^[^/]+\.[^/]+\//, "");

const COLUMNS: readonly Column<FleetMachine>[] = [
  {
    name: "State",
    class: "state",
    cell: (machine) => badge(shownState(machine)),
    order: shownState,
  },
  {
    name: "Name",
    class: "name",
    cell: ({ name, app_name, id }) =>
      span(
        { class: "named", title: `${name} ${id}` },
        a({ href: to("machines", app_name, id) }, name),
        code({ class: "dim" }, id),
      ),
    order: ({ name }) => name,
  },
  {
    name: "App",
    class: "app",
    cell: ({ app_name }) => a({ href: to("apps", app_name) }, app_name),
    order: ({ app_name }) => app_name,
  },
  { name: "Region", class: "wide region", cell: ({ region }) => region, order: ({ region }) => region },
  {
    name: "Image",
    class: "wide image",
    cell: (machine) => code({ title: imageOf(machine) }, shortImage(machine)),
    order: imageOf,
  },
  { name: "Size", class: "wide size", cell: sizeOf, order: sizeOf },
  {
    name: "Changed",
    class: "wide when",
    cell: ({ updated_at }) => h(Ago, { ms: Date.parse(updated_at) }),
    order: ({ updated_at }) => updated_at,
  },
];

interface Filter {
  text: string;
  state: string;
}

function matching(all: readonly FleetMachine[], { text, state }: Filter): FleetMachine[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((machine) => {
    if (state !== "" && shownState(machine) !== state) return false;
    if (words.length === 0) return true;
    const { name, id, app_name, region, private_ip } = machine;
    const hay = `${name} ${id} ${app_name} ${region} ${private_ip} ${imageOf(machine)}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  });
}

function MachineTable({ query }: { query: URLSearchParams }): VNode {
  const live = useCell(fleet);
  const readOnly = isReadOnly(useCell(session));
  const [filter, setFilter] = useState<Filter>({ text: query.get("q") ?? "", state: query.get("state") ?? "" });
  const [sorting, setSorting] = useState<Sorting>({ column: "Name", down: false });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const all = useMemo(() => [...live.machines.values()], [live]);
  const shown = useMemo(() => sorted(matching(all, filter), COLUMNS, sorting), [all, filter, sorting]);
  const change = (next: Filter): void => {
    setFilter(next);
    remember({ q: next.text, state: next.state });
  };
  const head = pageHead(
    "Machines",
    readOnly ? null : a({ class: "button primary", href: to("machines", "new") }, icon("plus"), "New machine"),
  );
  if (live.problem && !live.loaded) return div(head, problem(live.problem));
  if (!live.loaded) return div(head, loading());
  if (all.length === 0) return div(head, noMachines());
  const columns = readOnly ? COLUMNS : [choiceColumn(shown, chosen, setChosen), ...COLUMNS];
  return div(
    head,
    h(Filters, { all, filter, change }),
    chosen.size > 0
      ? h(Bulk, { chosen: all.filter(({ id }) => chosen.has(id)), clear: () => setChosen(new Set()) })
      : null,
    shown.length === 0
      ? empty(
          "No machine matches.",
          p(button({ type: "button", onClick: () => change({ text: "", state: "" }) }, "Show all")),
        )
      : h(Rows<FleetMachine>, {
          name: "Machines",
          rows: shown,
          columns,
          keyOf: ({ id }) => id,
          sorting,
          onSort: setSorting,
          selected: ({ id }) => chosen.has(id),
        }),
  );
}

function noMachines(): VNode {
  return empty(
    "No machines yet.",
    p(a({ href: to("machines", "new") }, "Make one here"), ", or on a terminal:"),
    block("hangar run hangar/hello"),
  );
}

/** Checkboxes for the shown rows. */
function choiceColumn(
  shown: readonly FleetMachine[],
  chosen: ReadonlySet<string>,
  choose: (ids: ReadonlySet<string>) => void,
): Column<FleetMachine> {
  const all = shown.length > 0 && shown.every(({ id }) => chosen.has(id));
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  return {
    name: "Select",
    class: "choose",
    head: () =>
      input({
        type: "checkbox",
        "aria-label": "Select all shown",
        checked: all,
        onChange: () => choose(new Set(all ? [] : shown.map(({ id }) => id))),
      }),
    cell: ({ id, name }) =>
      input({ type: "checkbox", "aria-label": `Select ${name}`, checked: chosen.has(id), onChange: () => toggle(id) }),
  };
}

function Filters(props: { all: readonly FleetMachine[]; filter: Filter; change: (filter: Filter) => void }): VNode {
  const { all, filter, change } = props;
  const by = new Map<string, number>();
  for (const state of all.map(shownState)) by.set(state, (by.get(state) ?? 0) + 1);
  const chip = (state: string, count: number, title: string): VNode =>
    button(
      {
        type: "button",
        key: state,
        class: "chip",
        "aria-pressed": filter.state === state,
        onClick: () => change({ ...filter, state: filter.state === state ? "" : state }),
      },
      title,
      span({ class: "count" }, String(count)),
    );
  return div(
    { class: "filters" },
    input({
      type: "search",
      "aria-label": "Filter machines",
      placeholder: "Filter by name, id, app, image…  ( / )",
      value: filter.text,
      onInput: (event) => change({ ...filter, text: event.currentTarget.value }),
    }),
    div(
      { class: "chips", role: "group", "aria-label": "Filter by state" },
      chip("", all.length, "all"),
      ...[...by].sort(([x], [y]) => (x < y ? -1 : 1)).map(([state, count]) => chip(state, count, state)),
    ),
  );
}

function Bulk({ chosen, clear }: { chosen: readonly FleetMachine[]; clear: () => void }): VNode {
  return div(
    { class: "bulk", role: "toolbar", "aria-label": "For the chosen machines" },
    span(plural(chosen.length, "machine"), " chosen"),
    ...ACTIONS.map((action) =>
      h(Action, {
        key: action.name,
        name: action.name,
        class: action.danger ? "danger" : "",
        disabled: !chosen.some(({ state }) => action.from.includes(state)),
        work: () => perform(action, chosen),
      }),
    ),
    button({ type: "button", class: "quiet", onClick: clear }, "Clear selection"),
  );
}
