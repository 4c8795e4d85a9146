/** What documents say about the code is compared with the code. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { suite, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { CATALOGUE } from "#core/error-catalogue.ts";
import { commandBlocks } from "./commands-in-documents.ts";
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

/** What stands behind `sh` in a page, and the test that runs such blocks. */
const RUN_BY: Record<string, string> = {
  tour: "test/system/readme.test.ts",
  operations: "test/system/readme.test.ts",
  security: "test/system/readme.test.ts",
  guide: "test/system/guides.test.ts",
  run: "test/system/package.test.ts",
  tutorial: "test/system/tutorial.test.ts",
  "own-app": "test/system/deploy-your-own-app.test.ts",
  compose: "test/system/compose-shop.test.ts",
  tutorials: "test/system/tutorials.test.ts",
  example: "test/system/examples.test.ts",
  real: "test/system/examples-real.test.ts",
  runners: "scripts/examples.ts",
  "three-hosts": "test/system/hosts-example.test.ts",
};

/** Pages that programs write, with where their commands come from. */
const WRITTEN: Record<string, string> = {
  "docs/cli.md": "examples of verbs, which test/system/cli.test.ts runs",
  "docs/PERFORMANCE.md": "how it was written",
  "docs/RELIABILITY.md": "how it was written",
};

/** Pages that speak of a checkout, where `npx hangar` is right; elsewhere npx would run a stranger's package of that name. */
const OF_A_CHECKOUT = new Set(["README.md", "CHANGELOG.md", "docs/operations.md"]);

suite("documents", () => {
  test("the page of limits has every limit of every module", () => {
    const page = readFileSync(join(root, "docs/limits.md"), "utf8");
    const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith("/limits.ts"),
    );
    const absent = files.flatMap((file) => {
      const source = readFileSync(join(root, "src", file), "utf8");
      const names = [...source.matchAll(/^ {2}(\w+): .*,$/gm)].map(([, name = ""]) => name);
      return names.filter((name) => !page.includes(`| \`${name}\` |`)).map((name) => `${file}: ${name}`);
    });
    assert.ok(files.length > 20);
    assert.deepEqual(absent, []);
  });

  test("no page, example or part of the dashboard says npx hangar outside a checkout", () => {
    const files = ["web", "examples", "docs"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(md|ts|sh|yml|json|toml)$/.test(entry.name))
        .map((entry) => relative(root, join(entry.parentPath, entry.name))),
    );
    const wrong = [...files, "README.md"].filter(
      (file) => !OF_A_CHECKOUT.has(file) && readFileSync(join(root, file), "utf8").includes("npx hangar"),
    );
    assert.deepEqual(wrong, []);
  });

  test("every command in a document is run by a test, or says why not", () => {
    const examples = readdirSync(join(root, "examples")).map((name) => `examples/${name}/README.md`);
    const with_commands = ["README.md", ...pages.filter((page) => /^docs\/[^/]+$/.test(page)), ...examples];
    const read = (file: string): string => readFileSync(join(root, file), "utf8");
    const blocks = with_commands
      .filter((page) => !WRITTEN[page])
      .flatMap((page) => commandBlocks(page, read(page)).map((block) => ({ ...block, run_by: RUN_BY[block.mark] })));
    const silent = blocks.filter(({ mark, run_by }) => !run_by && !/^not run: .{10,}/.test(mark));
    assert.deepEqual(
      silent.map(({ page, line }) => `${page}:${line}`),
      [],
      "commands are in blocks: ```sh and the mark of a test, or ```sh not run: and the reason",
    );
    // A test runs the pages and the examples that it names, or all of a folder.
    const unread = blocks.filter(({ page, run_by }) => {
      const text = run_by ? read(run_by) : "";
      const example = /^examples\/([^/]+)/.exec(page)?.[1] ?? page;
      const named = [page, example, "readdirSync"];
      return run_by && !named.some((name) => text.includes(name));
    });
    assert.deepEqual(
      unread.map(({ page, line, run_by }) => `${page}:${line} is not run by ${run_by}`),
      [],
    );
    const cited = blocks.flatMap(({ page, mark }) =>
      [...mark.matchAll(/\b(?:test|examples)\/[\w./-]*[\w-]/g)].map(([file]) => ({ page, file })),
    );
    assert.deepEqual(
      cited.filter(({ file }) => !existsSync(join(root, file))),
      [],
    );
  });

  test("commands are found in every notation", () => {
    const page =
      "    hangar apps list\n\n```sh tour\nls\n```\n\n```json\n    curl x\n```\n\n```\nnpm start\n```\n\n- one\n\n      A=1 npx hangar up";
    assert.deepEqual(
      commandBlocks("x.md", page).map(({ line, mark }) => `${line} ${mark}`.trim()),
      ["1", "3 tour", "12", "17"],
    );
  });

  test("generated files are up to date", () => {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/generate.ts", "--check"], {
      cwd: root,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
  });

  test("links between documents resolve", () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map(([, link]) => link ?? "")
        .filter((link) => !existsSync(join(root, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  test("every row of the threat model names existing tests", () => {
    const page = readFileSync(join(root, "docs/security.md"), "utf8");
    const table = page.split("## Threat model")[1]?.split("\n## ")[0] ?? "";
    const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| who |"));
    assert.ok(rows.length > 10);
    const wrong = rows.filter((row) => {
      const tests = [...(row.split(" | ").at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, file = ""]) => file);
      return tests.length === 0 || tests.some((file) => !file.endsWith(".test.ts") || !existsSync(join(root, file)));
    });
    assert.deepEqual(wrong, []);
  });

  test("npm scripts that documents name exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name ?? ""),
    );
    assert.deepEqual(
      [...new Set(named)].filter((name) => !scripts[name]),
      [],
    );
  });

  test("every file and function that ARCHITECTURE.md names in a journey exists", () => {
    const steps = [
      ...readFileSync(join(root, "ARCHITECTURE.md"), "utf8").matchAll(/^\| \d+ \| `(src\/[\w/.-]+)` `([\w.]+)` \|/gm),
    ];
    assert.ok(steps.length >= 40, `${steps.length} steps`);
    const missing = steps.filter(([, file = "", name = ""]) => !defines(join(root, file), name));
    assert.deepEqual(
      missing.map(([, file, name]) => `${file} ${name}`),
      [],
    );
  });

  test("ADRs have at most 40 lines", () => {
    const long = pages.filter(
      (page) =>
        page.startsWith("docs/adr/") && readFileSync(join(root, page), "utf8").trimEnd().split("\n").length > 40,
    );
    assert.deepEqual(long, []);
  });
});

/** Whether a file defines a function, class or method; `Class.method` needs both. */
function defines(file: string, name: string): boolean {
  if (!existsSync(file)) return false;
  const source = readFileSync(file, "utf8");
  return name.split(".").every((part) => {
    const declared = `^(export )?(async )?(function\\*?|class|const|interface) ${part}\\b`;
    const method = `^ {2}(static )?(async )?\\*?${part}[(<]`;
    return new RegExp(`${declared}|${method}`, "m").test(source);
  });
}

suite("OpenAPI document", () => {
  test("the document is valid OpenAPI 3.1, has every route, and its connector part the specified versions", async (t) => {
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
