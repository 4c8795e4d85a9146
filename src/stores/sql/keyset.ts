import type { PageKey, PageRequest } from "#core/list-page.ts";
import type { Value } from "../database.ts";
import { placeholders } from "./arguments.ts";

/**
 * Keyset pagination: rows after a key, ordered by its columns. With an index in that order every page costs the same.
 * `after` is the last condition, `order` the end of the query.
 */
export function keyset(
  columns: readonly string[],
  page: PageRequest | undefined,
  direction: "ASC" | "DESC" = "ASC",
): { after: string; order: string; args: Value[] } {
  const key: PageKey = page?.after ?? [];
  const names = columns.join(", ");
  const order = ` ORDER BY ${columns.map((column) => `${column} ${direction}`).join(", ")}`;
  return {
    after: page?.after ? ` AND (${names}) ${direction === "ASC" ? ">" : "<"} (${placeholders(key)})` : "",
    order: page ? `${order} LIMIT ?` : order,
    args: page ? [...key, page.limit] : [],
  };
}
