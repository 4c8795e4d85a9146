import type { Value } from "../database.ts";

/** Placeholders for a list. An empty one becomes NULL, which works in both databases. */
export const placeholders = (list: readonly unknown[]): string =>
  list.length === 0 ? "NULL" : list.map(() => "?").join(", ");

/** Converts to a column value: objects as JSON, booleans as 0 and 1. */
export function toValue(value: unknown): Value {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Uint8Array) return value;
  return value !== null && typeof value === "object" ? JSON.stringify(value) : (value as Value);
}
