import type { Value } from "../database.ts";

/** A place for each of a list. One that is empty holds nothing, also where the database has no empty lists. */
export const placeholders = (list: readonly unknown[]): string =>
  list.length === 0 ? "NULL" : list.map(() => "?").join(", ");

/** As a column keeps it: objects as JSON, booleans as 0 and 1. */
export function toValue(value: unknown): Value {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Uint8Array) return value;
  return value !== null && typeof value === "object" ? JSON.stringify(value) : (value as Value);
}
