/** What documents say about the code is compared with the code. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { CATALOGUE } from "#core/errors.ts";
import { operations } from "./openapi.ts";
import { testPlatform } from "./platform.ts";

const root = join(import.meta.dirname, "..");
const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(root, "docs"), { recursive: true }).map((file) => `docs/${String(file)}`),
].filter((file) => file.endsWith(".md"));

suite("documents", () => {
  test("generated files are up to date", () => {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/generate.ts", "--check"], {
      cwd: root,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
  });

  test("links between documents lead somewhere", () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map(([, link]) => link ?? "")
        .filter((link) => !existsSync(join(root, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  test("npm scripts that documents name exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name ?? ""),
    );
    assert.deepEqual(
      [...new Set(named)].filter((name) => !scripts[name]),
      [],
    );
  });

  test("decisions fit on a page", () => {
    const long = pages.filter(
      (page) => page.startsWith("docs/adr/") && readFileSync(join(root, page), "utf8").split("\n").length > 45,
    );
    assert.deepEqual(long, []);
  });
});

suite("the OpenAPI document", () => {
  test("is valid 3.1 and has every row, and its connector part the versions of the specification", async (t) => {
    const platform = await testPlatform(t);
    const { text } = await platform.ask("GET /openapi.json", { token: null });
    const result = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
    assert.ok(result.valid, JSON.stringify(result.errors)?.slice(0, 2000));
    const document = JSON.parse(text);
    assert.equal(document.openapi, "3.1.0");
    assert.equal(operations(document).length, platform.rows.length);
    const connectors = document.tags.find((tag: { name: string }) => tag.name === "connectors");
    assert.deepEqual(
      [connectors["x-api-version"], connectors["x-runtime-environment-version"]],
      ["0.1.12", "v0.0.1-rc48"],
    );
  });

  test("every error code of the catalogue has a row on the documentation page", async (t) => {
    const { ask } = await testPlatform(t);
    const { text } = await ask("GET /docs", { token: null });
    for (const code of Object.keys(CATALOGUE)) assert.ok(text.includes(`id="error-${code}"`), code);
  });
});
