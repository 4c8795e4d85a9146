import type { TSchema } from "typebox";
import { assert } from "#core/assert.ts";
import type { Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { closest } from "#core/words.ts";
import type { JsonSchema } from "./json-schema.ts";

/** Problems of `value`, each with its path under `root`. Empty when valid. */
export function problems(schema: TSchema, value: unknown, root: string): Problem[] {
  const found: Problem[] = [];
  check(schema as JsonSchema, value, root, found);
  return found.slice(0, LIMITS.problems_listed);
}

function check(schema: JsonSchema, value: unknown, path: string, found: Problem[]): void {
  const addProblem = (problem: string): void => {
    const allowed = allowedWords(schema);
    found.push({ path, problem, ...(allowed ? { allowed } : {}) });
  };
  if (found.length > LIMITS.problems_listed) return;
  if (schema.anyOf) {
    // A union that does not match gets one message with what is allowed; the branches' messages would confuse.
    if (!schema.anyOf.some((one) => fits(one, value))) addProblem(`must be ${allowedWords(schema)}`);
  } else if ("const" in schema) {
    if (value !== schema.const) addProblem("must be equal to constant");
  } else if (schema.type !== undefined) {
    const kind = KINDS[schema.type];
    assert(kind, `the schema's type ${schema.type} is known`);
    if (!kind.is(value)) addProblem(`must be ${schema.type}`);
    else kind.check?.(schema, value as never, { path, found, report: addProblem });
  }
}

function fits(schema: JsonSchema, value: unknown): boolean {
  const found: Problem[] = [];
  check(schema, value, "", found);
  return found.length === 0;
}

interface Place {
  path: string;
  found: Problem[];
  report(problem: string): void;
}

/** The check of each type and its further constraints. */
const KINDS: Record<
  string,
  { is(value: unknown): boolean; check?(schema: JsonSchema, value: never, at: Place): void }
> = {
  string: { is: (value) => typeof value === "string", check: checkString },
  integer: { is: Number.isInteger, check: checkNumber },
  number: { is: Number.isFinite, check: checkNumber },
  boolean: { is: (value) => typeof value === "boolean" },
  null: { is: (value) => value === null },
  array: { is: Array.isArray, check: checkArray },
  object: {
    is: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    check: checkObject,
  },
};

const regexes = new Map<string, RegExp>();
function regex(pattern: string): RegExp {
  let found = regexes.get(pattern);
  if (!found) {
    // Flag `s`, so that "every name" includes those with line breaks.
    found = new RegExp(pattern, "su");
    regexes.set(pattern, found);
  }
  return found;
}

function checkString({ minLength = 0, maxLength = Infinity, pattern }: JsonSchema, value: string, at: Place): void {
  // Length in code points; counted only if the code units exceed it.
  const length = value.length > maxLength || value.length < 2 * minLength ? Array.from(value).length : value.length;
  if (length < minLength) at.report(`must not have fewer than ${minLength} characters`);
  if (length > maxLength) at.report(`must not have more than ${maxLength} characters`);
  if (pattern !== undefined && !regex(pattern).test(value)) at.report(`must match pattern "${pattern}"`);
}

function checkNumber({ minimum, maximum, multipleOf }: JsonSchema, value: number, at: Place): void {
  if (minimum !== undefined && value < minimum) at.report(`must be >= ${minimum}`);
  if (maximum !== undefined && value > maximum) at.report(`must be <= ${maximum}`);
  if (multipleOf !== undefined && value % multipleOf !== 0) at.report(`must be multiple of ${multipleOf}`);
}

function checkArray({ items, minItems = 0, maxItems = Infinity }: JsonSchema, value: unknown[], at: Place): void {
  if (value.length < minItems) at.report(`must not have fewer than ${minItems} items`);
  if (value.length > maxItems) at.report(`must not have more than ${maxItems} items`);
  if (items) for (const [index, item] of value.entries()) check(items, item, `${at.path}.${index}`, at.found);
}

function checkObject(schema: JsonSchema, value: Record<string, unknown>, { path, found }: Place): void {
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) found.push({ path: `${path}.${name}`, problem: "is required" });
  }
  for (const [name, inner] of Object.entries(value)) {
    const property = propertyOf(schema, name);
    if (property) check(property, inner, `${path}.${name}`, found);
    else if (schema.additionalProperties === false)
      found.push({ path: `${path}.${name}`, problem: "is not a known field" });
  }
}

function propertyOf({ properties, patternProperties }: JsonSchema, name: string): JsonSchema | undefined {
  if (properties && Object.hasOwn(properties, name)) return properties[name];
  return Object.entries(patternProperties ?? {}).find(([pattern]) => regex(pattern).test(name))?.[1];
}

/** Describes what a schema allows. */
export function allowedWords(schema: JsonSchema): string | undefined {
  if (schema.anyOf) {
    const allowed = schema.anyOf.map((one) => ("const" in one ? JSON.stringify(one.const) : allowedWords(one)));
    return allowed.join(" or ");
  }
  if ("const" in schema) return JSON.stringify(schema.const);
  const { minimum, maximum, minLength, maxLength, pattern } = schema;
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

/** Converts query strings to numbers and booleans where the schema expects them. */
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

/** Many clients send null for unset fields: it means absence where null has no meaning of its own. */
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

/** Unknown body fields, most likely misspelt, for a warning. */
export function unknownFields(schema: JsonSchema, value: unknown): string[] {
  const { properties } = schema;
  if (!properties || schema.additionalProperties || value === null || typeof value !== "object") return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(properties, key))
    .slice(0, 8)
    .map((key) => {
      const near = closest(key, Object.keys(properties));
      return `${quoted(key)} is not a field of this request${near ? `, did you mean ${near}?` : ""}`;
    });
}

/** For a header, which is ASCII only. */
function quoted(key: string): string {
  const json = JSON.stringify(key.slice(0, 64));
  return json.replaceAll(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
