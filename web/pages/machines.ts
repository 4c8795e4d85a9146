import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { countsOf, type FleetMachine, fleet } from "../fleet.ts";
import { a, div, h, p } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { block, empty, loading, problem } from "../parts/basics.ts";
import { lazy } from "../parts/lazy.ts";
import { Rows, type Sorting, sorted } from "../parts/rows.ts";
import { remember, to } from "../router.ts";
import { isReadOnly, session } from "../session.ts";
import { Bulk, COLUMNS, choiceColumn, type Filter, Filters, machinesHead, matching, noMatch } from "./machine-list.ts";

const CreateMachine = lazy(async () => (await import("./create.ts")).CreateMachine);
const MachinePage = lazy(async () => (await import("./machine.ts")).MachinePage);
const SearchTable = lazy(async () => (await import("./machines-search.ts")).SearchTable);

/** `#/machines`, `#/machines/new`, `#/machines/<app>/<id>[/<tab>]`. */
export function Page({ path, query }: PageProps): VNode {
  const [app, id, tab] = path;
  if (app === "new" && !id) return h(CreateMachine, { app: query.get("app") ?? "" });
  if (app && id) return h(MachinePage, { app_name: app, machine_id: id, tab: tab ?? "", key: id });
  return h(MachineTable, { query });
}

function MachineTable({ query }: { query: URLSearchParams }): VNode {
  const live = useCell(fleet);
  return live.large ? h(SearchTable, { query }) : h(FollowedTable, { query });
}

function FollowedTable({ query }: { query: URLSearchParams }): VNode {
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
  const head = machinesHead(readOnly);
  if (live.problem && !live.loaded) return div(head, problem(live.problem));
  if (!live.loaded) return div(head, loading());
  if (all.length === 0) return div(head, noMachines());
  const columns = readOnly ? COLUMNS : [choiceColumn(shown, chosen, setChosen), ...COLUMNS];
  return div(
    head,
    h(Filters, { counts: countsOf(all), filter, change }),
    chosen.size > 0
      ? h(Bulk, { chosen: all.filter(({ id }) => chosen.has(id)), clear: () => setChosen(new Set()) })
      : null,
    shown.length === 0
      ? noMatch(() => change({ text: "", state: "" }))
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
