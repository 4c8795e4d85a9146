import type { JsonSchema } from "./json-schema.ts";
import type { Row } from "./route.ts";

/**
 * Parts of the API used by Go clients, which send "" for unset strings. Elsewhere an empty string may be meaningful,
 * such as an empty prefix of a connector's token.
 */
const EMPTY_IS_ABSENT: ReadonlySet<string> = new Set<Row["part"]>(["apps", "machines", "volumes"]);

/** Names have their own rules: an empty one is generated or refused. */
const NAMES: ReadonlySet<string> = new Set(["name", "app_name"]);

/** Treats an empty string in an optional body field as absent; required fields stay and are validated. */
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

/** Like Prometheus, treats a parameter without a value as absent. */
export function dropEmptyParameters(schema: JsonSchema, query: Record<string, unknown>): Record<string, unknown> {
  const { required = [] } = schema;
  return Object.fromEntries(Object.entries(query).filter(([name, value]) => value !== "" || required.includes(name)));
}

/** A string, or a union with one: an enumeration, a signal's name or number. */
const isText = (schema: JsonSchema | undefined): boolean =>
  schema !== undefined &&
  (schema.type === "string" || typeof schema.const === "string" || (schema.anyOf?.some(isText) ?? false));
