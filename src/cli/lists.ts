/** Lists on the command line: `--limit`, `--all`, and tables that are printed as their pages arrive. */
import type { Client, ListItem, ListRoute } from "#client/client.ts";
import { tableWriter } from "./output.ts";
import { type Context, type Input, numberOption, type Result, UsageError } from "./verb.ts";

/** Default limit of the rows of a table; --json prints all. */
const ROWS = 1000;
const PAGE_ROWS = 500;

export const LIST_OPTIONS: readonly (readonly [flags: string, words: string])[] = [
  ["--limit <n>", `at most so many (default: ${ROWS}, with --json all)`],
  ["--all", "all of them, however many there are"],
];

function boundOf(input: Input): { most: number; is_set: boolean } {
  const limit = numberOption(input, "limit");
  const all = input.options["all"] === true;
  if (limit !== undefined && all) throw new UsageError("--limit and --all exclude each other");
  if (limit === 0) throw new UsageError("--limit is at least 1");
  const most = limit ?? (all || input.options["json"] === true ? Infinity : ROWS);
  return { most, is_set: limit !== undefined };
}

/** Pages of a list, up to the limit of the command line. Prints a note when the default limit cuts the list. */
async function* bounded<Item>(context: Context, input: Input, pages: AsyncIterable<Item[]>): AsyncGenerator<Item[]> {
  const { most, is_set } = boundOf(input);
  let left = most;
  for await (const page of pages) {
    if (left === 0) {
      context.say(`only the first ${most} are shown; --all shows the rest`);
      return;
    }
    yield page.slice(0, left);
    left -= Math.min(left, page.length);
    if (left === 0 && is_set) return;
  }
}

/** All items of some pages. */
export async function collect<Item>(pages: AsyncIterable<Item[]>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

interface Shown<Item> {
  heads: readonly string[];
  row(item: Item): readonly string[];
  /** Instead of an empty table. */
  none?: string;
}

/** A list as a table; with --json its items, after all pages are there. */
export async function listTable<Item>(
  context: Context,
  input: Input,
  pages: AsyncIterable<Item[]>,
  { heads, row, none }: Shown<Item>,
): Promise<Result> {
  const rest = bounded(context, input, pages);
  if (input.options["json"] === true) return { data: await collect(rest), text: "" };
  const { value: first = [] } = (await rest.next()) as IteratorResult<Item[], undefined>;
  if (first.length === 0 && none !== undefined) return { data: [], text: none };
  const { head, lines } = tableWriter(heads, first.map(row));
  const more = async function* (): AsyncGenerator<string> {
    for await (const page of rest) if (page.length > 0) yield lines(page.map(row));
  };
  return { data: first, text: [head, ...(first.length > 0 ? [lines(first.map(row))] : [])].join("\n"), more: more() };
}

/** The pages of a route, none larger than the command line needs. */
export function pagesOf<Route extends ListRoute>(
  client: Client,
  input: Input,
  route: Route,
  request: Parameters<typeof client.pages<Route>>[1],
): AsyncGenerator<ListItem<Route>[]> {
  const limit = Math.min(PAGE_ROWS, boundOf(input).most);
  const query = { ...(request as { query?: object }).query, limit };
  return client.pages(route, { ...request, query } as typeof request);
}
