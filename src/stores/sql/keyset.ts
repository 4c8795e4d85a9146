import type { PageKey, PageRequest } from "#core/list-page.ts";
import type { Value } from "../database.ts";
import { placeholders } from "./arguments.ts";

/**
 * A page of a list: what comes after a key, in the order of the columns that the key is made of. An index in that order
 * makes every page cost the same. `after` belongs at the end of the conditions, `order` at the end of the query.
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
