/** The machines of an organization with more than the dashboard follows: searched and counted by the platform. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import type { FleetMachine } from "../fleet.ts";
import { div, h, p, span } from "../html.ts";
import { type Gap, isGap, MachineSearch } from "../machine-search.ts";
import { loading, problem } from "../parts/basics.ts";
import { figure } from "../parts/format.ts";
import { type Column, Rows } from "../parts/rows.ts";
import { remember } from "../router.ts";
import { isReadOnly, session } from "../session.ts";
import { Bulk, COLUMNS, choiceColumn, type Filter, Filters, machinesHead, noMatch } from "./machine-list.ts";

/** A search begins when no key was pressed for this long. */
const TYPING_MS = 150;

/** A column that also holds the places of machines that are still coming. */
const orGap = ({ name, class: style = "", head, cell }: Column<FleetMachine>): Column<FleetMachine | Gap> => ({
  name,
  class: style,
  ...(head ? { head } : {}),
  cell: (row) => (isGap(row) ? span({ class: "skeleton line" }) : cell(row)),
});

const WIDE = COLUMNS.map(orGap);

export function SearchTable({ query }: { query: URLSearchParams }): VNode {
  const readOnly = isReadOnly(useCell(session));
  const [filter, setFilter] = useState<Filter>({ text: query.get("q") ?? "", state: query.get("state") ?? "" });
  const [search, setSearch] = useState<MachineSearch | undefined>();
  useEffect(() => {
    const next = new MachineSearch(filter);
    // The last result stays until this one is here.
    const show = (): void => (next.found.value.loaded ? setSearch(() => next) : undefined);
    const unwatch = next.found.watch(show);
    return () => {
      unwatch();
      next.stop();
    };
  }, [filter]);
  const [typed, setTyped] = useState(filter);
  useEffect(() => {
    if (typed === filter) return;
    const timer = setTimeout(() => setFilter(typed), typed.text === filter.text ? 0 : TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const change = (next: Filter): void => {
    setTyped(next);
    remember({ q: next.text, state: next.state });
  };
  return div(machinesHead(readOnly), search ? h(Found, { search, filter: typed, change, readOnly }) : loading());
}

interface FoundProps {
  search: MachineSearch;
  filter: Filter;
  change: (filter: Filter) => void;
  readOnly: boolean;
}

function Found({ search, filter, change, readOnly }: FoundProps): VNode {
  const { rows, counts, problem: trouble } = useCell(search.found);
  const [chosen, setChosen] = useState<ReadonlyMap<string, FleetMachine>>(new Map());
  const here = rows.filter((row): row is FleetMachine => !isGap(row));
  const latest = new Map(here.map((machine) => [machine.id, machine]));
  const choose = (ids: ReadonlySet<string>): void =>
    setChosen(
      new Map(
        [...ids].flatMap((id) => {
          const machine = latest.get(id) ?? chosen.get(id);
          return machine ? [[id, machine] as const] : [];
        }),
      ),
    );
  const choice = choiceColumn(here, new Set(chosen.keys()), choose);
  const columns = readOnly ? WIDE : [orGap(choice), ...WIDE];
  return div(
    counts ? h(Filters, { counts, filter, change }) : null,
    trouble === undefined ? null : problem(trouble),
    chosen.size > 0
      ? h(Bulk, {
          chosen: [...chosen.values()].map((machine) => latest.get(machine.id) ?? machine),
          clear: () => setChosen(new Map()),
        })
      : null,
    rows.length === 0
      ? noMatch(() => change({ text: "", state: "" }))
      : h(Rows<FleetMachine | Gap>, {
          name: "Machines",
          rows,
          columns,
          keyOf: ({ id }) => id,
          selected: ({ id }) => chosen.has(id),
          onSight: (first, last) => search.see(first, last),
        }),
    p(
      { class: "dim" },
      `In the order of their creation. The platform searches ${figure(counts?.machines ?? 0)} machines by words in name, id, app, region, image and address.`,
    ),
  );
}
