/** Explains a field of the API from the platform's own OpenAPI document, so that it matches the platform's version. */
import { closest } from "#core/words.ts";
import { table } from "../output.ts";
import { type Context, UsageError, type Verb } from "../verb.ts";

interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  pattern?: string;
}

interface OpenApi {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>;
  components?: { schemas?: Record<string, Schema> };
}

/** The schema of each root of a path: the body of the request that creates such a resource. */
const ROOTS: Record<string, [path: string, method: string, ...within: string[]]> = {
  config: ["/v1/apps/{app_name}/machines", "post", "config"],
  machine: ["/v1/apps/{app_name}/machines", "post"],
  volume: ["/v1/apps/{app_name}/volumes", "post"],
  app: ["/v1/apps", "post"],
};

export const explainField: Verb = {
  words: "explain",
  summary: "Explain a config field: its meaning, type and allowed values",
  arguments: [
    ["<path>", `such as services.ports of a config, or of ${Object.keys(ROOTS).join(", ")} where that comes first`],
  ],
  examples: ["hangar explain services.ports", "hangar explain volume"],
  async run(context, input) {
    const names = fromRoot((input.args[0] ?? "").split("."));
    const [root = "", ...path] = names;
    const document = await readOpenApi(context);
    let schema = rootOf(document, root);
    for (const [at, name] of path.entries()) schema = step(document, schema, name, names.slice(0, at + 1).join("."));
    const own = resolved(document, schema);
    const fields = Object.entries(fieldsOf(document, own));
    const required = new Set(inner(document, own).required);
    const rows = fields.map(([name, field]) => {
      const plain = resolved(document, field);
      return [name, typeText(document, plain), required.has(name) ? "required" : "", plain.description ?? ""];
    });
    const head = [`${names.join(".")}  ${typeText(document, own)}`, own.description ?? "", bounds(own)];
    const text = [
      ...head.filter((line) => line !== ""),
      ...(rows.length > 0 ? ["", table(["field", "type", "", "meaning"], rows)] : []),
    ];
    return { data: { path: names.join("."), schema: own }, text: text.join("\n") };
  },
};

/** `services.ports` stands for `config.services.ports`. */
const fromRoot = (path: string[]): string[] =>
  Object.hasOwn(ROOTS, path[0] ?? "") || path[0] === "" ? path : ["config", ...path];

async function readOpenApi({ client }: Context): Promise<OpenApi> {
  // The route is typed as text, but the client has parsed the JSON.
  return (await client.call("GET /openapi.json", {})) as unknown as OpenApi;
}

function rootOf(document: OpenApi, root: string): Schema {
  const place = Object.hasOwn(ROOTS, root) ? ROOTS[root] : undefined;
  if (!place) throw new UsageError(`a path begins with ${Object.keys(ROOTS).join(", ")}, not ${root || "nothing"}`);
  const [path, method, ...within] = place;
  let schema = document.paths[path]?.[method]?.requestBody?.content["application/json"]?.schema ?? {};
  for (const name of within) schema = step(document, schema, name, root);
  return schema;
}

function step(document: OpenApi, schema: Schema, name: string, place: string): Schema {
  const fields = fieldsOf(document, resolved(document, schema));
  const found = fields[name] ?? fields["*"];
  if (found) return found;
  const names = Object.keys(fields);
  const near = closest(name, names);
  const known = names.length > 0 ? `it has ${names.join(", ")}` : "it has no fields";
  throw new UsageError(`${place} has no field ${name}${near ? `; did you mean ${near}?` : ""} (${known})`);
}

function resolved(document: OpenApi, schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  if (!name) return schema;
  const { $ref: _, ...own } = schema;
  return { ...document.components?.schemas?.[name], ...own };
}

/** The items of a list, or the schema itself; of several alternatives the one with fields. */
function inner(document: OpenApi, schema: Schema): Schema {
  if (schema.items) return inner(document, resolved(document, schema.items));
  const choices = (schema.anyOf ?? schema.oneOf ?? []).map((one) => inner(document, resolved(document, one)));
  return choices.find(({ properties }) => properties) ?? schema;
}

/** Fields by name; a map has one, `*`. */
function fieldsOf(document: OpenApi, schema: Schema): Record<string, Schema> {
  const { properties, additionalProperties } = inner(document, schema);
  const any = typeof additionalProperties === "object" ? { "*": additionalProperties } : {};
  return { ...properties, ...any };
}

function typeText(document: OpenApi, schema: Schema): string {
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.items) return `list of ${typeText(document, resolved(document, schema.items))}`;
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map((one) => typeText(document, resolved(document, one))))].join(" | ");
  return [schema.type ?? "anything"].flat().join(" | ");
}

function bounds({ default: usual, minimum, maximum, maxLength, pattern }: Schema): string {
  const said: [string, unknown][] = [
    ["default", usual],
    ["at least", minimum],
    ["at most", maximum],
    ["letters at most", maxLength],
    ["pattern", pattern],
  ];
  return said
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(", ");
}
