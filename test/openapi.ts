/** The API's own document, used against it: what may be asked, and what may be answered. */
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

interface JsonSchema {
  type?: string;
  $ref?: string;
  anyOf?: JsonSchema[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  patternProperties?: Record<string, JsonSchema>;
  minimum?: number;
  maximum?: number;
}

interface Media {
  content?: Record<string, { schema: JsonSchema }>;
}

export interface Operation {
  method: string;
  path: string;
  parameters: { in: string; name: string; required: boolean; schema: JsonSchema }[];
  requestBody?: Media;
  responses: Record<string, Media>;
}

export interface Document {
  openapi: string;
  paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
  components: { schemas: Record<string, JsonSchema> };
}

export function operations(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
}

/** Says what is wrong with an answer according to the document, or undefined. */
export function answerChecker(
  document: Document,
): (operation: Operation, status: number, text: string) => string | undefined {
  const compiled = new Map<JsonSchema, ReturnType<typeof Compile>>();
  const check = (schema: JsonSchema, value: unknown): boolean => {
    const name = schema.$ref?.split("/").at(-1);
    const resolved = name ? document.components.schemas[name] : schema;
    if (!resolved) return false;
    const validator = compiled.get(resolved) ?? Compile(resolved as TSchema);
    compiled.set(resolved, validator);
    return validator.Check(value);
  };
  return ({ responses }, status, text) => {
    const response = responses[String(status)];
    if (!response) return `status ${status} is not documented`;
    const schema = response.content?.["application/json"]?.schema;
    if (!response.content) return text === "" ? undefined : "has a body, and none is documented";
    if (!schema) return undefined;
    return check(schema, JSON.parse(text)) ? undefined : `the body does not fit its schema: ${text.slice(0, 200)}`;
  };
}

const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  "",
  "x",
  "\u0000",
  "é\u{1f600}",
  "../..",
  "a:b",
  "%00",
  [],
  {},
  [[]],
  { a: { b: 1 } },
  "x".repeat(3000),
];
const NAMES = ["personal", "web", "acme", "KEY", "nowhere", "a b", "%2e%2e", "ü", "x".repeat(300), ":", "__proto__"];

/** Values that fit a schema most of the time, and sometimes do not. */
export function generator(random: () => number): { value(schema: JsonSchema): unknown; name(): string } {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const whole = (low: number, high: number): number => low + Math.floor(random() * (high - low + 1));

  const object = (schema: JsonSchema): unknown => {
    const entries = Object.entries(schema.properties ?? {}).filter(
      ([name]) => schema.required?.includes(name) !== true || random() < 0.95,
    );
    const chosen = entries.filter(([name]) => schema.required?.includes(name) || random() < 0.5);
    const own = chosen.map(([name, inner]): [string, unknown] => [name, value(inner)]);
    const [free] = Object.values(schema.patternProperties ?? {});
    const extra = free
      ? Array.from({ length: whole(0, 3) }, (): [string, unknown] => [pick(["A", "KEY", "a-b", "1"]), value(free)])
      : [];
    const stray: [string, unknown][] =
      random() < 0.1 ? [[pick(["__proto__", "extra", "constructor", "\u{1f600}", "a\nb"]), pick(ODD)]] : [];
    return Object.fromEntries([...own, ...extra, ...stray]);
  };

  const makers: Record<string, (schema: JsonSchema) => unknown> = {
    object,
    array: (schema) => Array.from({ length: whole(0, 3) }, () => value(schema.items ?? {})),
    string: () => pick(["x", "web", "personal", `n-${whole(0, 1e6)}`, "30d", "", "ä b"]),
    integer: (schema) => whole((schema.minimum ?? 0) - 1, Math.min(schema.maximum ?? 100, 100)),
    number: () => random() * 100,
    boolean: () => random() < 0.5,
    null: () => null,
  };

  function value(schema: JsonSchema): unknown {
    if (random() < 0.06) return pick(ODD);
    if (schema.anyOf) return value(pick(schema.anyOf));
    if ("const" in schema) return schema.const;
    return makers[schema.type ?? ""]?.(schema) ?? pick(ODD);
  }
  return { value, name: () => pick(NAMES) };
}
