import type TypeBox from "typebox";
import type { TSchema } from "typebox";

/**
 * Builds JSON Schema with static types. Names and types are TypeBox's; its code is not loaded, because only a dozen of
 * its functions are needed and its 700 files take a third of the memory and half of the start time. `schema.test.ts`
 * compares the two.
 */
type Builders = Pick<
  typeof TypeBox,
  | "Array"
  | "Boolean"
  | "Integer"
  | "Literal"
  | "Null"
  | "Number"
  | "Object"
  | "Optional"
  | "Partial"
  | "Record"
  | "String"
  | "Union"
  | "Unknown"
  | "Unsafe"
>;

type Schema = Record<string, unknown>;
type Properties = Record<string, Schema>;

const optional = new WeakSet<Schema>();

const plain =
  (type: string) =>
  (options: Schema = {}): Schema => ({ type, ...options });

/** `required` comes first and only if non-empty, as in TypeBox: generated documents depend on it. */
function object(properties: Properties, options: Schema = {}): Schema {
  const required = Object.keys(properties).filter((name) => !optional.has(properties[name] ?? {}));
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties, ...options };
}

/** A copy, because the same schema may be required elsewhere. */
function optionally(schema: Schema): Schema {
  const copy = { ...schema };
  optional.add(copy);
  return copy;
}

function partial({ properties }: { properties: Properties }, options: Schema = {}): Schema {
  return object(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optionally(schema)])),
    options,
  );
}

const builders = {
  Array: (items: Schema, options: Schema = {}) => ({ type: "array", items, ...options }),
  Boolean: plain("boolean"),
  Integer: plain("integer"),
  Literal: (value: unknown, options: Schema = {}) => ({ type: typeof value, const: value, ...options }),
  Null: plain("null"),
  Number: plain("number"),
  Object: object,
  Optional: optionally,
  Partial: partial,
  Record: (key: { pattern?: string }, value: Schema, options: Schema = {}) => ({
    type: "object",
    patternProperties: { [key.pattern ?? "^.*$"]: value },
    ...options,
  }),
  String: plain("string"),
  Union: (anyOf: readonly Schema[], options: Schema = {}) => ({ anyOf, ...options }),
  Unknown: (options: Schema = {}) => ({ ...options }),
  Unsafe: (schema: TSchema) => ({ ...schema }),
};

/** The types are TypeBox's; the test checks that they match. */
export const Type = builders as unknown as Builders;
