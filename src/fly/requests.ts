/** Converts requests of Fly's clients to those of the platform's rows. */
import type { Problem } from "#core/errors.ts";
import type { Input } from "#http/admission.ts";
import type { Row } from "#http/route.ts";
import { problems } from "#http/validate.ts";

/** Zero values that Go clients send for unset fields: `""` for a string, `0s` for a duration. */
const ABSENT: ReadonlySet<unknown> = new Set(["", "0s"]);

/** The same without fields that hold such a value where the row's schema allows none. */
export function withoutUnset(row: Row, given: Input): Input {
  if (row.body === undefined || given.body === null || typeof given.body !== "object") return given;
  const body = structuredClone(given.body);
  for (const { path } of problems(row.body, body, "body") as Problem[]) drop(body, path.split(/[.[\]]+/).slice(1));
  return { ...given, body };
}

function drop(holder: object, path: readonly string[]): void {
  const [name = "", ...rest] = path.filter((part) => part !== "");
  const fields = holder as Record<string, unknown>;
  if (!Object.hasOwn(fields, name)) return;
  const value = fields[name];
  if (rest.length === 0 && ABSENT.has(value) && !Array.isArray(holder)) delete fields[name];
  else if (value !== null && typeof value === "object") drop(value, rest);
}

/** Some clients (FLAME) generate names in Base64, with upper case, `+` and `/`, and never compare them. */
export function plainName(given: Input): Input {
  const { name } = (given.body ?? {}) as { name?: unknown };
  if (typeof name !== "string") return given;
  const plain = name.toLowerCase().replace(/[+/_]/g, "-").replace(/-+$/, "");
  return { ...given, body: { ...(given.body as object), name: plain } };
}

/** Waiting for `stopped` without a version means the machine's current version. */
export function renamed(given: Input, from: string, to: string): Input {
  const { [from]: value, ...query } = given.query;
  return value === undefined ? given : { ...given, query: { ...query, [to]: value } };
}
