/** docs/fields.md: the support of every request field, generated from the schemas. */
import { type Field, fieldsOf } from "#http/field-support.ts";
import type { JsonSchema } from "#http/json-schema.ts";
import type { Row } from "#http/route.ts";

/** The requests whose fields are listed, with the titles of their sections. */
export const FIELD_SECTIONS: Record<string, string> = {
  "POST /v1/apps": "Create an app",
  "POST /v1/apps/:app_name/machines": "Create a machine",
  "POST /v1/apps/:app_name/machines/:machine_id": "Update a machine, beside `config`",
  "POST /v1/apps/:app_name/machines/:machine_id/stop": "Stop a machine",
  "POST /v1/apps/:app_name/machines/:machine_id/signal": "Signal a machine",
  "POST /v1/apps/:app_name/machines/:machine_id/exec": "Run a command in a machine",
  "POST /v1/apps/:app_name/machines/:machine_id/lease": "Lease a machine",
  "POST /v1/apps/:app_name/volumes": "Create a volume",
  "PUT /v1/apps/:app_name/volumes/:volume_id": "Update a volume",
  "PUT /v1/apps/:app_name/volumes/:volume_id/extend": "Extend a volume",
};

/** The fields of a section; the config of a machine is listed once. */
export function sectionFields(row: Row): Field[] {
  const fields = [...fieldsOf((row.body ?? {}) as JsonSchema)];
  const isUpdate = row.path.endsWith("/:machine_id");
  return isUpdate ? fields.filter(({ path }) => path !== "config" && !path.startsWith("config.")) : fields;
}

export const nameOf = ({ method, path }: Row): string => `${method} ${path}`;

export const fieldSections = (rows: readonly Row[]): { title: string; row: Row }[] =>
  Object.entries(FIELD_SECTIONS).flatMap(([name, title]) =>
    rows.filter((row) => nameOf(row) === name).map((row) => ({ title, row })),
  );

/** A field's type. */
function kindOf(schema: JsonSchema): string {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(kindOf))].join(", ");
  if ("const" in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.type === "array") return `list of ${kindOf(schema.items ?? {})}`;
  const [free] = Object.values(schema.patternProperties ?? {});
  if (free) return `map of ${kindOf(free)}`;
  return schema.type ?? "anything";
}

export function fieldsPage(
  rows: readonly Row[],
  { note, table }: { note: string; table(head: string[], lines: string[][]): string },
): string {
  const sections = fieldSections(rows).map(({ title, row }) => {
    const lines = sectionFields(row).map(({ path, schema, required }) => [
      `\`${path}\`${required ? " (required)" : ""}`,
      kindOf(schema),
      schema["x-support"]?.is ?? "",
      schema.description ?? "",
    ]);
    return `## ${title}\n\n\`${nameOf(row)}\`\n\n${table(["field", "type", "support", "description"], lines)}\n`;
  });
  const text = [
    "The support of a request field is one of three. **acts**: the field is supported. **refused**: no host supports the",
    "feature; the response is 400 with the field's name. **warned**: the field is stored but has no effect; the response",
    "says so in `warnings`. A zero value (`null`, `false`, `0`, an empty text or list) counts as absent. Fields that are",
    "not listed here are stored in a machine's config, also with an entry in `warnings`. `*` stands for an index or a name.",
  ];
  return `# Fields\n\n${note}${text.join("\n")}\n\n${sections.join("\n")}`;
}
