/**
 * Lists in pages: `limit` and `cursor` in the query, the next cursor in the header `svc-next-cursor`, as
 * `Link: <…>; rel="next"`, and as `next_cursor` in bodies that are objects.
 */
import { createHash } from "node:crypto";
import type { TObject, TSchema } from "typebox";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { PageKey, PageRequest } from "#core/list-page.ts";
import { Type } from "./schema.ts";

type Kind = "text" | "number";
type KeyOf<Kinds extends readonly Kind[]> = { [I in keyof Kinds]: Kinds[I] extends "text" ? string : number };

/** How a route's list is paginated. */
export interface PageRule<Key extends PageKey = PageKey> {
  /** Field of the items in the response; empty when the response is the list. */
  items: string;
  /** Types of the key's parts. */
  kinds: readonly Kind[];
  /** Default page size; all items, up to `list_items`, when absent. */
  size?: number;
  /** The cursor is the key itself, a number such as a version or an event id. */
  numbered?: boolean;
  /** The query parameter that chooses the list's order; a cursor of another order is refused. */
  order?: string;
  /** Type only, never set. */
  key?: Key;
}

/** Paginates a list ordered by these: `inPages("apps", ["text"])`. */
export const inPages = <const Kinds extends readonly Kind[]>(
  items: string,
  kinds: Kinds,
  options: { size?: number; numbered?: boolean; order?: string } = {},
): PageRule<KeyOf<Kinds>> => ({ items, kinds, ...options });

/** The requested page of a list. */
export class ListPage<Key extends PageKey = PageKey> {
  readonly after: Key | undefined;
  readonly limit: number;
  /** Whether the caller requested pages. */
  readonly is_paged: boolean;
  readonly #encode: (key: Key) => string;
  #next: string | undefined;

  constructor(parts: { after: Key | undefined; limit: number; is_paged: boolean; encode(key: Key): string }) {
    this.after = parts.after;
    this.limit = parts.limit;
    this.is_paged = parts.is_paged;
    this.#encode = parts.encode;
  }

  /** The next page's cursor; undefined on the last page. */
  get next(): string | undefined {
    return this.#next;
  }

  /** The request to the store: one more item than the page, to detect a next one. */
  get request(): PageRequest<Key> {
    return { ...(this.after ? { after: this.after } : {}), limit: this.limit + 1 };
  }

  /** Builds the page from the store's result. */
  take<Item>(found: readonly Item[], keyOf: (item: Item) => Key): Item[] {
    const page = found.slice(0, this.limit);
    const last = page.at(-1);
    if (found.length > page.length && last !== undefined) this.#next = this.#encode(keyOf(last));
    return page;
  }

  /** Builds the page from a complete list in memory, sorted by key. */
  of<Item>(all: readonly Item[], keyOf: (item: Item) => Key, order: "ascending" | "descending" = "ascending"): Item[] {
    const sign = order === "ascending" ? 1 : -1;
    const { after } = this;
    const keyed = all.map((item) => ({ item, key: keyOf(item) })).sort((a, b) => sign * compareKeys(a.key, b.key));
    const rest = after ? keyed.filter(({ key }) => sign * compareKeys(key, after) > 0) : keyed;
    return this.take(rest, ({ key }) => key).map(({ item }) => item);
  }
}

function compareKeys(a: PageKey, b: PageKey): number {
  const place = a.findIndex((value, i) => value !== b[i]);
  return place < 0 ? 0 : (a[place] ?? 0) < (b[place] ?? 0) ? -1 : 1;
}

/** The page of a route that is no list. */
export const NO_PAGE = new ListPage<never>({ after: undefined, limit: Infinity, is_paged: false, encode: () => "" });

export function readPage(
  { pages, path }: { pages?: PageRule; path: string },
  query: Record<string, unknown>,
): ListPage<never> {
  if (!pages) return NO_PAGE;
  const { limit, cursor } = query as { limit?: number; cursor?: string | number };
  const order = query[pages.order ?? ""];
  const list = fingerprint(typeof order === "string" ? `${path} ${order}` : path);
  const given = cursor === undefined || cursor === "" ? undefined : String(cursor);
  return new ListPage<PageKey>({
    after: given === undefined ? undefined : pages.numbered ? [Number(given)] : decode(given, list, pages.kinds),
    limit: limit ?? pages.size ?? LIMITS.list_items,
    is_paged: limit !== undefined || given !== undefined || pages.size !== undefined,
    encode: (key) => (pages.numbered ? String(key[0]) : encode(key, list)),
  }) as unknown as ListPage<never>;
}

/** Identifies the list of a cursor, so that a cursor of another list is refused. */
const fingerprint = (path: string): string => createHash("sha256").update(path).digest("base64url").slice(0, 4);

const encode = (key: PageKey, list: string): string =>
  Buffer.from(JSON.stringify([list, ...key])).toString("base64url");

function decode(cursor: string, list: string, kinds: readonly Kind[]): PageKey {
  const [of, ...key] = parsed(cursor);
  const fits =
    of === list &&
    key.length === kinds.length &&
    key.every((value, i) => (kinds[i] === "text" ? isText : isCount)(value));
  if (fits) return key as (string | number)[];
  const allowed = "`next_cursor` (or the header svc-next-cursor) of a page of the same list";
  fail("invalid_request", "query.cursor is not a cursor of this list", {
    details: [{ path: "query.cursor", problem: "is not a cursor of this list", allowed }],
    hint: "leave cursor out to begin with the first page",
  });
}

// PostgreSQL's text has no NUL.
const isText = (value: unknown): boolean => typeof value === "string" && !value.includes("\0");
const isCount = (value: unknown): boolean => Number.isSafeInteger(value);

function parsed(cursor: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(value) ? (value as unknown[]) : [];
  } catch {
    return [];
  }
}

type Outcome = Pick<ListPage, "next" | "limit" | "is_paged">;

/** Headers about the next page. */
export function pageHeaders(page: Outcome, url: string): Record<string, string> {
  const { next } = page;
  if (next === undefined) return {};
  const [path = "", search = ""] = url.split("?");
  const query = new URLSearchParams(search);
  query.set("cursor", next);
  const cut = `only the first ${page.limit} are listed (limit list_items); request pages with limit and cursor`;
  return {
    "svc-next-cursor": next,
    link: `<${path}?${query.toString()}>; rel="next"`,
    ...(page.is_paged ? {} : { "svc-warning": cut }),
  };
}

/** Adds `next_cursor` to a response that is an object. */
export const withNext = (value: unknown, { next }: Outcome): unknown =>
  next === undefined || Array.isArray(value) || typeof value !== "object" ? value : { ...value, next_cursor: next };

const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.page_items, description: "Page size; a next cursor follows." }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: LIMITS.cursor_chars,
      description: "Cursor of the previous page: its `svc-next-cursor` header, or `next_cursor`.",
    }),
  ),
};

/** The query schema of a list: its own parameters, and the optional ones of pages. */
export const pageQuery = (query: TObject = Type.Object({})): TObject => withProperties(query, PAGE_QUERY);

/** The response schema of a list: an object may have `next_cursor`. */
export const pageAnswer = (schema: TSchema): TSchema =>
  (schema as { type?: string }).type === "object" ? withProperties(schema as TObject, NEXT) : schema;

const NEXT = {
  next_cursor: Type.Optional(Type.String({ description: "When there is more: the cursor of the next page." })),
};

const withProperties = (schema: TObject, more: TObject["properties"]): TObject => ({
  ...schema,
  properties: { ...schema.properties, ...more, ...ownOf(schema, more) },
});

/** The list's own definition of a page parameter takes precedence. */
const ownOf = ({ properties }: TObject, names: object): TObject["properties"] =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => name in names));
