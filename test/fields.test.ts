/** Every field of a request acts, is refused or is warned about: the schemas say which, and this holds them to it. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { JsonSchema } from "#http/json-schema.ts";
import type { Row } from "#http/route.ts";
import { FIELD_SECTIONS, fieldSections, nameOf, sectionFields } from "../scripts/fields-page.ts";
import { bench } from "./machine-bench.ts";

const root = join(import.meta.dirname, "..");

/** What reads fields: everything but the schemas that declare them, those who send them, and tests. */
const READERS = globSync("src/**/*.ts", { cwd: root })
  .filter((file) => !/schema\.ts$|\.(test|suite)\.ts$|fixtures\.ts$|^src\/(client|cli|testing)\//.test(file))
  .map((file) => readFileSync(join(root, file), "utf8").replaceAll(/^ *(\/?\*|\/\/).*$/gm, ""))
  .join("\n");

const isRead = (name: string): boolean => new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(READERS);

/** A value that the schema takes, and that is not one a client sends to say nothing. */
function sample(schema: JsonSchema): unknown {
  if (schema.anyOf) return sample(schema.anyOf[0] ?? {});
  if ("const" in schema) return schema.const;
  switch (schema.type) {
    case "string":
      return schema.pattern === "^/" ? "/x" : "x";
    case "integer":
      return Math.max(2, schema.minimum ?? 0);
    case "boolean":
      return true;
    case "array":
      return [sample(schema.items ?? {})];
    case "object": {
      const entries = (schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]);
      return Object.fromEntries(entries);
    }
    default:
      return { anything: 1 };
  }
}

/** The smallest value of a schema that has the field of this path. */
function withField(schema: JsonSchema, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return sample(schema);
  if (schema.anyOf) return withField(schema.anyOf.find(({ type }) => type === "object") ?? {}, [name, ...rest]);
  if (schema.type === "array") return [withField(schema.items ?? {}, rest)];
  const [free] = Object.values(schema.patternProperties ?? {});
  if (free) return { x: withField(free, rest) };
  return { ...(sample(schema) as object), [name]: withField(schema.properties?.[name] ?? {}, rest) };
}

/** The path as an answer names it. */
const shownPath = (schema: JsonSchema, names: readonly string[]): string => {
  let at: JsonSchema | undefined = schema;
  const shown = names.map((name) => {
    const list = at?.type === "array";
    const [free] = Object.values(at?.patternProperties ?? {});
    at = list ? at?.items : (free ?? at?.properties?.[name]);
    return name === "*" ? (list ? "0" : "x") : name;
  });
  return shown.join(".");
};

suite("request fields", () => {
  let platform: Awaited<ReturnType<typeof bench>>;
  let sections: { title: string; row: Row }[];
  const ends: (() => unknown)[] = [];
  before(async () => {
    platform = await bench({ after: (end: () => unknown) => void ends.push(end) });
    sections = fieldSections(platform.rows);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  /** Fields of a kind with a request that sets each of them. */
  const marked = (kind: string) =>
    sections.flatMap(({ row }) => {
      const schema = row.body as JsonSchema;
      return sectionFields(row)
        .filter((field) => field.schema["x-support"]?.is === kind)
        .map(({ path }) => {
          const names = path.split(".");
          return { row, path: shownPath(schema, names), body: withField(schema, names) as Record<string, unknown> };
        });
    });

  test("the listed requests are routes", () => {
    assert.deepEqual(
      sections.map(({ row }) => nameOf(row)),
      Object.keys(FIELD_SECTIONS),
    );
  });

  test("every field is marked as acting, refused or warned about", () => {
    const unmarked = sections.flatMap(({ row }) =>
      sectionFields(row)
        .filter(({ schema }) => !schema["x-support"] || !schema.description)
        .map(({ path }) => `${nameOf(row)}: ${path}`),
    );
    assert.deepEqual(unmarked, []);
  });

  test("every acting field is read by code", () => {
    const unread = marked("acts")
      .filter(({ path }) => !isRead(path.split(".").at(-1) ?? ""))
      .map(({ path }) => path);
    assert.deepEqual(unread, []);
  });

  test("every field without effect gives a warning in create and update", async () => {
    const { on, ask } = platform;
    const fields = marked("warned");
    assert.ok(fields.length >= 12, String(fields.length));
    for (const { row, path, body } of fields) {
      const warns = (answer: { status: number; text: string; body: { warnings?: string[] } }): void => {
        assert.equal(answer.status, 200, answer.text);
        const about = answer.body.warnings?.filter((line) => line.startsWith(`${path} has no effect here: `));
        assert.equal(about?.length, 1, `${path}: ${answer.text}`);
      };
      if (row.path.endsWith("/volumes")) {
        warns(await ask("POST /v1/apps/web/volumes", { body: { ...body, name: "x", require_unique_zone: false } }));
      } else if (row.path.endsWith("/machines")) {
        const made = await on("POST", { ...body, skip_launch: true });
        warns(made);
        warns(await on(`POST ${made.body.id}`, { ...body, skip_launch: true }));
      }
    }
  });

  test("every field that no host supports is refused by its name", async () => {
    const { on, ask } = platform;
    const { id } = (await on("POST", { config: { image: "x" }, skip_launch: true })).body;
    const fields = marked("refused");
    assert.ok(fields.length >= 9, String(fields.length));
    for (const { row, path, body } of fields) {
      const refuses = (answer: { status: number; text: string; body: { details: { path: string }[] } }): void => {
        assert.equal(answer.status, 400, `${path}: ${answer.text}`);
        assert.ok(
          answer.body.details.some((one) => one.path === `body.${path}`),
          answer.text,
        );
      };
      const url = row.path.replace(":app_name", "web").replace(":machine_id", id);
      refuses(await ask(`${row.method} ${url}`, { body }));
      if (!path.startsWith("config.")) continue;
      refuses(await on(`POST ${id}`, body));
      refuses(await on(`PATCH ${id}`, { config: body["config"] }));
    }
  });

  test("a zero value of an unsupported field counts as absent", async () => {
    const guest = { gpu_kind: "", gpus: 0, host_dedication_id: null, kernel_args: [], required_host_features: [] };
    const made = await platform.on("POST", {
      config: { image: "x", guest, containers: [], spot: null, rootfs: {} },
      skip_launch: true,
      lsvd: false,
      skip_secrets: false,
    });
    assert.deepEqual([made.status, made.body.warnings], [200, undefined], made.text);
    const compute = { gpu_kind: null, gpus: null, host_dedication_id: null };
    const volume = { name: "zero", machines_only: false, compute };
    const { status, body } = await platform.ask("POST /v1/apps/web/volumes", { body: volume });
    assert.deepEqual([status, body.warnings], [200, undefined]);
  });

  test("one GPU without a kind, which is the default, gives a warning instead of an error", async () => {
    const made = await platform.on("POST", { config: { image: "x", guest: { gpus: 1 } }, skip_launch: true });
    assert.deepEqual(made.body.warnings, ["config.guest.gpus has no effect here: no host has a GPU"]);
  });
});
