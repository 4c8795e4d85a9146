/** What a list of machines is made of: columns, filter, choice, and actions on the chosen. */
import type { VNode } from "preact";
import { ACTIONS, perform } from "../actions.ts";
import { type Counts, type FleetMachine, shownState } from "../fleet.ts";
import { a, button, code, div, h, input, p, span } from "../html.ts";
import { Action, Ago, badge, empty, pageHead } from "../parts/basics.ts";
import { plural } from "../parts/format.ts";
import { icon } from "../parts/icon.ts";
import type { Column } from "../parts/rows.ts";
import { to } from "../router.ts";
import { sizeOf } from "./machine-words.ts";

const imageOf = ({ config }: FleetMachine): string => (typeof config["image"] === "string" ? config["image"] : "");

/** Without the registry, which is long and mostly the same. */
const shortImage = (machine: FleetMachine): string => imageOf(machine).replace(/^[^/]+\.[^/]+\//, "");

export const COLUMNS: readonly Column<FleetMachine>[] = [
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

export interface Filter {
  text: string;
  state: string;
}

export function matching(all: readonly FleetMachine[], { text, state }: Filter): FleetMachine[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((machine) => {
    if (state !== "" && shownState(machine) !== state) return false;
    if (words.length === 0) return true;
    const { name, id, app_name, region, private_ip } = machine;
    const hay = `${name} ${id} ${app_name} ${region} ${private_ip} ${imageOf(machine)}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  });
}

/** Checkboxes for the shown rows. */
export function choiceColumn(
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

/** The filter of the list, and its machines by state. */
export function Filters(props: { counts: Counts; filter: Filter; change: (filter: Filter) => void }): VNode {
  const { counts, filter, change } = props;
  const chip = (state: string, count: string, title: string): VNode =>
    button(
      {
        type: "button",
        key: state,
        class: "chip",
        "aria-pressed": filter.state === state,
        onClick: () => change({ ...filter, state: filter.state === state ? "" : state }),
      },
      title,
      span({ class: "count" }, count),
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
      chip("", `${counts.machines}${counts.exact ? "" : "+"}`, "all"),
      ...Object.entries(counts.states)
        .sort(([x], [y]) => (x < y ? -1 : 1))
        .map(([state, count]) => chip(state, String(count), state)),
    ),
  );
}

export const machinesHead = (readOnly: boolean): VNode =>
  pageHead(
    "Machines",
    readOnly ? null : a({ class: "button primary", href: to("machines", "new") }, icon("plus"), "New machine"),
  );

export const noMatch = (showAll: () => void): VNode =>
  empty("No machine matches.", p(button({ type: "button", onClick: showAll }, "Show all")));

export function Bulk({ chosen, clear }: { chosen: readonly FleetMachine[]; clear: () => void }): VNode {
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
