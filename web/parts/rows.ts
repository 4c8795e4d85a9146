/**
 * A table of any length: only the rows in sight are drawn, so that ten thousand machines cost what forty do.
 * Rows have one height, the page scrolls, and two empty rows keep the place of all the others.
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { button, caption, div, table, tbody, td, th, thead, tr } from "../html.ts";

export interface Column<Row> {
  name: string;
  /** Class of its cells; `wide` ones are hidden on a small screen. */
  class?: string;
  head?: () => ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** Sort key; without it the column is not sortable. */
  order?: (row: Row) => string | number;
}

export interface Sorting {
  column: string;
  down: boolean;
}

interface Props<Row> {
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  selected?: (row: Row) => boolean;
  /** Called when other rows come into sight, or their number changes. */
  onSight?: (first: number, last: number) => void;
}

const ROW_PX = 37;
const BEYOND = 12;

export function Rows<Row>(props: Props<Row>): VNode {
  const { rows, columns } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useSight(body, rows.length);
  useEffect(() => props.onSight?.(first, last), [first, last, rows, props.onSight === undefined]);
  return div(
    { class: "table-wrap" },
    table(
      { class: "rows", "aria-rowcount": rows.length + 1 },
      caption({ class: "offscreen" }, props.name),
      thead(tr(...columns.map((column) => headCell(column, props)))),
      tbody(
        { ref: body },
        filler("above", first * ROW_PX),
        ...rows.slice(first, last).map((row, index) =>
          tr(
            {
              key: props.keyOf(row),
              "aria-rowindex": first + index + 2,
              class: props.selected?.(row) ? "selected" : "",
            },
            ...columns.map((column) => td({ key: column.name, class: column.class ?? "" }, column.cell(row))),
          ),
        ),
        filler("below", (rows.length - last) * ROW_PX),
      ),
    ),
  );
}

const filler = (key: string, height: number): VNode | null =>
  height > 0 ? tr({ key, class: "filler", "aria-hidden": true, style: { height: `${height}px` } }) : null;

function headCell<Row>(column: Column<Row>, { sorting, onSort }: Props<Row>): VNode {
  const { name, order } = column;
  const shown = column.head ? column.head() : name;
  if (!order || !sorting || !onSort) return th({ key: name, scope: "col", class: column.class ?? "" }, shown);
  const on = sorting.column === name;
  const direction = sorting.down ? "descending" : "ascending";
  const sort = (): void => onSort({ column: name, down: on && !sorting.down });
  return th(
    { key: name, scope: "col", class: column.class ?? "", "aria-sort": on ? direction : "none" },
    button({ type: "button", class: `sort ${on ? direction : ""}`, onClick: sort }, shown),
  );
}

/** Visible rows and a margin (virtual scrolling). */
function useSight(body: { current: HTMLElement | null }, count: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useEffect(() => {
    const measure = (): void => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / ROW_PX) - BEYOND);
      const last = Math.ceil((innerHeight - top) / ROW_PX) + BEYOND;
      setRange((now) => (now[0] === first && now[1] === last ? now : [first, last]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count]);
  const last = Math.min(count, range[1]);
  return [Math.min(range[0], Math.max(0, last - 1)), last];
}

/** Stable sort by the selected column. */
export function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], { column, down }: Sorting): Row[] {
  const order = columns.find(({ name }) => name === column)?.order;
  if (!order) return [...rows];
  const sign = down ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: order(row) }));
  return keyed.sort((x, y) => (x.key < y.key ? -sign : x.key > y.key ? sign : 0)).map(({ row }) => row);
}
