/** Clients that common generators make of the OpenAPI document: they compile, and their calls work. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";

const GO = { generator: "v2.8.2", runtime: "v1.8.0" } as const;
const PYTHON = "openapi-python-client==0.29.1";
const sources = join(import.meta.dirname, "../openapi-clients");

/** A folder with the programs and the document. */
async function workFolder(t: TestContext) {
  const platform = await testPlatform(t);
  const folder = tempDir();
  cpSync(sources, folder, { recursive: true });
  mkdirSync(join(folder, "api"));
  writeFileSync(join(folder, "openapi.json"), (await platform.ask("GET /openapi.json", { token: null })).text);
  const env = { cwd: folder, HANGAR_URL: platform.base_url, HANGAR_TOKEN: platform.token };
  return { folder, env, run: (command: string) => shell(command, env) };
}

/** The reason why a tool cannot be had here; undefined when its commands worked. */
function missing(commands: readonly (readonly [string, readonly string[]])[], cwd: string): string | undefined {
  for (const [program, args] of commands) {
    const { status, error, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
    if (status !== 0) return `${program} ${args.join(" ")}: ${error?.message ?? stderr.slice(-200)}`;
  }
  return undefined;
}

suite("generated clients", () => {
  test("oapi-codegen makes a Go client that compiles and works", async (t) => {
    const { folder, run } = await workFolder(t);
    const why = missing(
      [
        ["go", ["mod", "init", "hangar/test/openapi-clients"]],
        ["go", ["get", "-tool", `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${GO.generator}`]],
        ["go", ["get", `github.com/oapi-codegen/runtime@${GO.runtime}`]],
      ],
      folder,
    );
    if (why !== undefined) return t.skip(`no Go toolchain, or the generator cannot be had: ${why}`);
    const generated = await run("go tool oapi-codegen -generate types,client -package api -o api/api.go openapi.json");
    assert.deepEqual([generated.status, generated.stderr], [0, ""]);
    const built = await run("go build -o client .");
    assert.deepEqual([built.status, built.stderr], [0, ""]);
    const { status, stdout, stderr } = await run("./client");
    assert.deepEqual([status, stdout], [0, "from-go true not_found\n"], stderr);
  });

  test("openapi-python-client makes a Python client of every route, and it works", async (t) => {
    const { folder, run } = await workFolder(t);
    const install = ["install", "--quiet", "--disable-pip-version-check", PYTHON];
    const why = missing(
      [
        ["python3", ["-m", "venv", "venv"]],
        [join(folder, "venv/bin/pip"), install],
      ] as const,
      folder,
    );
    if (why !== undefined) return t.skip(`no Python, or the generator cannot be had: ${why}`);
    const generate = "PATH=$PWD/venv/bin:$PATH openapi-python-client generate --path openapi.json --meta none";
    const generated = await run(`${generate} --output-path hangar_client`);
    assert.equal(generated.status, 0, generated.stderr);
    assert.doesNotMatch(`${generated.stdout}${generated.stderr}`, /will not be generated/i);
    const { status, stdout, stderr } = await run("venv/bin/python main.py");
    assert.deepEqual([status, stdout], [0, "from-python True not_found\n"], stderr);
  });
});
