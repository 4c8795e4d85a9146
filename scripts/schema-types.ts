/** JSON Schema to TypeScript, for the part of JSON Schema our own schemas use. */
interface JsonSchema {
  title?: string;
  type?: string;
  anyOf?: JsonSchema[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  patternProperties?: Record<string, JsonSchema>;
  additionalProperties?: boolean | JsonSchema;
}

const PLAIN: Record<string, string> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  null: "null",
};

/** Types of schemas that have a title, by that title; filled by `typeOf`. */
export const named = new Map<string, string>();

/** The type of a schema, in one line; of one with a title its name. */
export function typeOf(schema: JsonSchema): string {
  if (!schema.title) return typeText(schema);
  if (!named.has(schema.title))
    named.set(
      schema.title,
      `{\n${fields(schema)
        .map((field) => `  ${field};\n`)
        .join("")}}`,
    );
  return schema.title;
}

function typeText(schema: JsonSchema): string {
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.type === "array") return listOf(typeOf(schema.items ?? {}));
  if (schema.type === "object") return objectType(schema);
  return PLAIN[schema.type ?? ""] ?? "unknown";
}

const listOf = (type: string): string => (type.includes(" ") ? `(${type})[]` : `${type}[]`);

function fields(schema: JsonSchema): string[] {
  return Object.entries(schema.properties ?? {}).map(([name, inner]) => {
    const optional = schema.required?.includes(name) ? "" : "?";
    const key = /^[a-zA-Z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(inner);
    return `${key}${optional}: ${type}${optional && type !== "unknown" ? " | undefined" : ""}`;
  });
}

function objectType(schema: JsonSchema): string {
  const own = fields(schema);
  const [free] = Object.values(schema.patternProperties ?? {});
  const open = free ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined);
  if (own.length === 0) return open ? `Record<string, ${typeOf(open)}>` : "Record<string, unknown>";
  return `{ ${own.join("; ")} }`;
}
