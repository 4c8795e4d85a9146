/** JSON Schema to TypeScript, for the part of JSON Schema our own schemas use. */
interface JsonSchema {
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

export function typeOf(schema: JsonSchema): string {
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.type === "array") return `(${typeOf(schema.items ?? {})})[]`;
  if (schema.type === "object") return objectType(schema);
  return PLAIN[schema.type ?? ""] ?? "unknown";
}

function objectType(schema: JsonSchema): string {
  const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => {
    const optional = schema.required?.includes(name) ? "" : "?";
    return `${/^[a-zA-Z_]\w*$/.test(name) ? name : JSON.stringify(name)}${optional}: ${typeOf(inner)}${optional ? " | undefined" : ""}`;
  });
  const [free] = Object.values(schema.patternProperties ?? {});
  const open = free ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined);
  if (fields.length === 0) return open ? `Record<string, ${typeOf(open)}>` : "Record<string, unknown>";
  return `{ ${fields.join("; ")} }`;
}
