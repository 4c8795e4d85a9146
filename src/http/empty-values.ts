import type { JsonSchema } from "./json-schema.ts";
import type { Row } from "./route.ts";

/**
 * Parts of the API that clients written in Go use: these cannot leave out a string, and send "" for one that is not set.
 * Elsewhere an empty string may mean something, such as no prefix before a connector's token.
 */
const EMPTY_IS_ABSENT: ReadonlySet<string> = new Set<Row["part"]>(["apps", "machines", "volumes"]);

/** Names have rules of their own: an empty one is made up, or refused as a name. */
const NAMES: ReadonlySet<string> = new Set(["name", "app_name"]);

/** An empty string for an optional field of the body is absence; what is required stays, and is refused where it is checked. */
export function dropEmpty({ part }: Pick<Row, "part">, schema: JsonSchema, body: unknown): unknown {
  const { properties = {}, required = [] } = schema;
  if (!EMPTY_IS_ABSENT.has(part) || body === null || typeof body !== "object" || Array.isArray(body)) return body;
  const isAbsent = ([name, value]: [string, unknown]): boolean =>
    value === "" &&
    !NAMES.has(name) &&
    Object.hasOwn(properties, name) &&
    isText(properties[name]) &&
    !required.includes(name);
  return Object.fromEntries(Object.entries(body).filter((field) => !isAbsent(field)));
}

/** Prometheus takes a parameter without a value for one that is not there, and so do its clients. */
export function dropEmptyParameters(schema: JsonSchema, query: Record<string, unknown>): Record<string, unknown> {
  const { required = [] } = schema;
  return Object.fromEntries(Object.entries(query).filter(([name, value]) => value !== "" || required.includes(name)));
}

/** A string, or a union that has one: an enumeration, a signal's name or its number. */
const isText = (schema: JsonSchema | undefined): boolean =>
  schema !== undefined &&
  (schema.type === "string" || typeof schema.const === "string" || (schema.anyOf?.some(isText) ?? false));
