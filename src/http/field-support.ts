/**
 * The support of each request field: it has an effect, is refused, or is accepted with a warning. It is declared in the
 * schema itself, so that validation, warnings in responses, the OpenAPI document and `docs/fields.md` agree.
 */
import type { TSchema } from "typebox";
import type { Problem } from "#core/errors.ts";
import { closest } from "#core/words.ts";
import type { JsonSchema, Support } from "./json-schema.ts";

const marked = <T extends TSchema>(schema: T, description: string, support: Support): T => ({
  ...schema,
  description,
  "x-support": support,
});

/** A field with an effect. */
export const acts = <T extends TSchema>(schema: T, description: string): T =>
  marked(schema, description, { is: "acts" });

/** A field that is stored without an effect; the response warns. */
export const warned = <T extends TSchema>(schema: T, why: string): T =>
  marked(schema, `Has no effect here: ${why}.`, { is: "warned", why });

/** A field that requests something no host supports. */
export const refused = <T extends TSchema>(schema: T, why: string, tolerates: readonly unknown[] = []): T =>
  marked(schema, `Refused: ${why}.`, { is: "refused", why, ...(tolerates.length > 0 ? { tolerates } : {}) });

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** Clients send zero values for unused fields. */
function isSet(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false && value !== 0 && value !== "";
}

/** A field of a value, with its schema or, if unknown, the known names. */
interface Present {
  path: string;
  key: string;
  value: unknown;
  field?: JsonSchema;
  known: readonly string[];
}

/** All fields of a value, recursively. */
function* present(schema: JsonSchema, value: unknown, path: string): Generator<Present> {
  const { items = {}, properties, patternProperties } = branch(schema, value);
  if (Array.isArray(value)) for (const [index, one] of value.entries()) yield* present(items, one, `${path}.${index}`);
  if (!isObject(value)) return;
  const [free] = Object.values(patternProperties ?? {});
  const known = Object.keys(properties ?? {});
  for (const [key, inner] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    const field = known.includes(key) ? properties?.[key] : free;
    if (field) yield* [{ path: at, key, value: inner, field, known }, ...present(field, inner, at)];
    else if (properties) yield { path: at, key, value: inner, known };
  }
}

/** The branch of a union that fits a list or an object. */
const branch = (schema: JsonSchema, value: unknown): JsonSchema =>
  schema.anyOf?.find(({ type }) => (Array.isArray(value) ? type === "array" : type === "object")) ?? schema;

/** Problems of set fields that the schema refuses. */
export function refusedFields(schema: TSchema, value: unknown, root: string): Problem[] {
  return [...present(schema as JsonSchema, value, root)].flatMap(({ field, value: inner, path }) => {
    const { is, why, tolerates } = field?.["x-support"] ?? {};
    const refuses = is === "refused" && isSet(inner) && !tolerates?.includes(inner);
    return refuses ? [{ path, problem: `is refused: ${why}` }] : [];
  });
}

const WARNINGS = 32;

/** Set fields without an effect, according to the schema. */
export function idleFields(schema: TSchema, value: unknown, root: string): string[] {
  const found = [...present(schema as JsonSchema, value, root)].flatMap(({ field, value: inner, path }) => {
    const { is = "acts", why } = field?.["x-support"] ?? {};
    return is !== "acts" && isSet(inner) ? [`${path} has no effect here: ${why}`] : [];
  });
  return found.slice(0, WARNINGS);
}

/** Unknown fields at any depth, with suggestions. */
export function strangeFields(schema: TSchema, value: unknown, root: string): string[] {
  const strange = [...present(schema as JsonSchema, value, root)].filter(({ field }) => field === undefined);
  return strange.slice(0, WARNINGS).map(({ path, key, known }) => {
    const near = closest(key, known);
    return `${path} is not known here; it is kept as it is${near ? `, but did you mean ${near}?` : ""}`;
  });
}

export interface Field {
  /** With dots; `*` is an index or a name. */
  path: string;
  schema: JsonSchema;
  required: boolean;
}

/** All fields of a schema with their paths, outer ones first. Omits what is inside a field without an effect. */
export function* fieldsOf(schema: JsonSchema, path = ""): Generator<Field> {
  const { items, properties, patternProperties, anyOf, required } = schema;
  for (const [name, field] of Object.entries(properties ?? {})) {
    const at = path === "" ? name : `${path}.${name}`;
    yield { path: at, schema: field, required: required?.includes(name) ?? false };
    const { is = "acts" } = field["x-support"] ?? {};
    if (is === "acts") yield* fieldsOf(field, at);
  }
  if (items) yield* fieldsOf(items, `${path}.*`);
  for (const one of Object.values(patternProperties ?? {})) yield* fieldsOf(one, `${path}.*`);
  // A list, or a single item: the fields are the same.
  const [one] = (anyOf ?? []).filter(({ type }) => type === "object" || type === "array");
  if (one) yield* fieldsOf(one, path);
}
