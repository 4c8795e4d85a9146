import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { Settings } from "typebox/system";
import type { Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { closest } from "#core/words.ts";

// Every problem of a request is told at once; the library stops after eight otherwise.
Settings.Set({ maxErrors: 4 * LIMITS.problems_listed });

/** Schemas of ours are plain JSON Schema; these are the keywords looked at here. */
export interface JsonSchema {
  type?: string;
  properties?: Record<string, JsonSchema>;
  required?: readonly string[] | undefined;
  anyOf?: readonly JsonSchema[];
  const?: unknown;
  items?: JsonSchema;
  additionalProperties?: unknown;
  patternProperties?: Record<string, JsonSchema>;
  description?: string;
}

const compiled = new WeakMap<TSchema, Validator>();

function validator(schema: TSchema): Validator {
  let found = compiled.get(schema);
  if (!found) {
    found = Compile(schema);
    compiled.set(schema, found);
  }
  return found;
}

/** What is wrong with `value`, each problem with its path under `root`. Empty when nothing is. */
export function problems(schema: TSchema, value: unknown, root: string): Problem[] {
  const check = validator(schema);
  if (check.Check(value)) return [];
  const errors = check.Errors(value) as unknown as RawError[];
  // Of a union that does not fit, the union's own line says it; the lines of its branches only confuse.
  const unions = errors.filter((error) => error.keyword === "anyOf").map((error) => `${error.schemaPath}/anyOf/`);
  const told = errors.filter((error) => !unions.some((prefix) => error.schemaPath.startsWith(prefix)));
  return told.flatMap((error) => toProblems(error, schema as JsonSchema, root)).slice(0, LIMITS.problems_listed);
}

interface RawError {
  keyword: string;
  schemaPath: string;
  instancePath: string;
  params: Record<string, unknown>;
  message: string;
}

function toProblems(error: RawError, schema: JsonSchema, root: string): Problem[] {
  const path = root + error.instancePath.replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
  const names = (error.params["requiredProperties"] ?? error.params["additionalProperties"]) as string[] | undefined;
  switch (error.keyword) {
    case "required":
      return (names ?? []).map((name) => ({ path: `${path}.${name}`, problem: "is required" }));
    case "additionalProperties":
      return (names ?? []).map((name) => ({ path: `${path}.${name}`, problem: "is not a known field" }));
    case "boolean": // Said by additionalProperties already.
      return [];
    default: {
      const at = schemaAt(schema, error.schemaPath);
      const allowed = at && allowedWords(at);
      const problem = error.keyword === "anyOf" && allowed ? `must be ${allowed}` : error.message;
      return [{ path, problem, ...(allowed ? { allowed } : {}) }];
    }
  }
}

function schemaAt(schema: JsonSchema, path: string): JsonSchema | undefined {
  let at: unknown = schema;
  for (const part of path.split("/").slice(1)) {
    at = (at as Record<string, unknown> | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return at as JsonSchema | undefined;
}

/** What a schema allows, in a few words. */
export function allowedWords(schema: JsonSchema): string | undefined {
  if (schema.anyOf) {
    const words = schema.anyOf.map((one) => ("const" in one ? JSON.stringify(one.const) : allowedWords(one)));
    return words.join(" or ");
  }
  if ("const" in schema) return JSON.stringify(schema.const);
  const { minimum, maximum, minLength, maxLength, pattern } = schema as Record<string, number | undefined>;
  switch (schema.type) {
    case "integer":
      return `a whole number${rangeWords(minimum, maximum, "")}`;
    case "number":
      return `a number${rangeWords(minimum, maximum, "")}`;
    case "string":
      return `a string${rangeWords(minLength, maxLength, " characters")}${pattern ? ` matching ${pattern}` : ""}`;
    case "null":
      return "null";
    default:
      return schema.type ? `${/^[aeio]/.test(schema.type) ? "an" : "a"} ${schema.type}` : undefined;
  }
}

function rangeWords(low: number | undefined, high: number | undefined, unit: string): string {
  if (low === undefined) return high === undefined ? "" : ` of at most ${high}${unit}`;
  return high === undefined ? ` of at least ${low}${unit}` : ` of ${low} to ${high}${unit}`;
}

/** Query strings are text; this gives numbers and booleans where the schema wants them, and leaves the rest to the check. */
export function coerceQuery(schema: JsonSchema, query: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = { ...query };
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const value = result[name];
    if (typeof value === "string") result[name] = coerce(property, value);
  }
  return result;
}

function coerce(schema: JsonSchema, text: string): unknown {
  if (schema.type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (schema.type === "boolean" && /^(true|1|)$/.test(text)) return true;
  if (schema.type === "boolean" && /^(false|0)$/.test(text)) return false;
  if (schema.type === "array") return [text];
  return text;
}

/** Many clients send null for a field they do not set: where null has no meaning of its own, it is absence. */
export function dropNulls(schema: JsonSchema, value: unknown): unknown {
  const { items } = schema;
  if (Array.isArray(value)) return items ? value.map((one) => dropNulls(items, one)) : value;
  if (value === null || typeof value !== "object" || !schema.properties) return value;
  const kept: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    const property = Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined;
    if (inner === null && property && !allowsNull(property)) continue;
    kept.push([key, property ? dropNulls(property, inner) : inner]);
  }
  return Object.fromEntries(kept);
}

const allowsNull = (schema: JsonSchema): boolean =>
  schema.type === "null" || (schema.anyOf?.some(allowsNull) ?? false) || (!schema.type && !schema.anyOf);

/** Fields of the body that nothing reads, in words: most likely misspelt. */
export function unknownFields(schema: JsonSchema, value: unknown): string[] {
  const { properties } = schema;
  if (!properties || schema.additionalProperties || value === null || typeof value !== "object") return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(properties, key))
    .slice(0, 8)
    .map((key) => {
      const near = closest(key, Object.keys(properties));
      return `${JSON.stringify(key)} is not a field of this request${near ? `, did you mean ${near}?` : ""}`;
    });
}
