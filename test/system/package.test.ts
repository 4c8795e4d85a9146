/** The package as others have it: packed, unpacked into an empty project, run there and checked against its types. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, suite, test } from "node:test";
import { shell, tempDir } from "../support.ts";
import { Child, ROOT } from "./child.ts";

const project = tempDir("hangar-package");
/** Where an installation puts it. */
const HOME = "node_modules/@hangar-machines/hangar";
const run = (line: string) =>
  shell(line, { cwd: project, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` });

/** What someone who tests their own code writes, with the types it must have. */
const PROGRAM = `
import { Client, ClientError, waitForMachine, type Machine } from "@hangar-machines/hangar/client";
import { type Emulator, startPlatform } from "@hangar-machines/hangar/testing";

const emulator: Emulator = await startPlatform();
const client = new Client({ base_url: emulator.base_url, token: emulator.token, retries: 3 });
emulator.faults.add({ route: "POST /v1/apps", fail: "overloaded" });
await client.call("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
emulator.faults.add({ route: "POST /v1/apps/:app_name/machines", hang_up: "after" });
const { id } = await client.call("POST /v1/apps/:app_name/machines", {
  params: { app_name: "web" },
  body: { config: { image: "any" } },
});
const machine: Machine = await waitForMachine(client, { app_name: "web", machine_id: id }, ["started"]);
const all = await client.call("GET /v1/apps/:app_name/machines", { params: { app_name: "web" }, query: {} });
console.log(machine.state, all.length);
try {
  // @ts-expect-error: there is no such route.
  await client.call("GET /v1/nothing", {});
} catch (thrown) {
  console.log(thrown instanceof ClientError ? thrown.http : thrown);
}
await emulator.close();
`;

/** Debian's own, which is older than the one that runs this. */
const OLD_NODE = "/usr/bin/node";
const old = spawnSync(OLD_NODE, ["--version"], { encoding: "utf8" }).stdout ?? "";
const noOldNode = /^v(1\d|2[0-3])\./.test(old) ? false : "this box has no Node older than 24";

before(async () => {
  const packed = await shell(`"${process.execPath}" scripts/pack.ts --format npm --to "${project}"`, { cwd: ROOT });
  assert.equal(packed.status, 0, packed.stderr);
  const modules = join(project, "node_modules");
  mkdirSync(join(project, HOME), { recursive: true });
  const unpacked = await run(`tar -xzf hangar-*.tgz --strip-components=1 -C ${HOME}`);
  assert.equal(unpacked.status, 0, unpacked.stderr);
  // What an installation would fetch is the checkout's; the package itself lies in node_modules like any other.
  const { dependencies } = JSON.parse(readFileSync(join(project, HOME, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), "@types/node"]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
  writeFileSync(join(project, "package.json"), '{"type": "module"}');
  writeFileSync(join(project, "program.ts"), PROGRAM);
});

suite("npm package", () => {
  test("a program uses the emulator and the client, survives faults, and repeats nothing", async () => {
    const { status, stdout, stderr } = await run("node program.ts");
    assert.equal(status, 0, stderr);
    assert.equal(stdout, "started 1\n404\n");
  });

  test("the package's types compile, also with library checks", async () => {
    const strict = "--strict --noEmit --target es2024 --module nodenext --types node";
    const { status, stdout } = await run(`"${join(ROOT, "node_modules/.bin/tsc")}" ${strict} program.ts`);
    assert.equal(status, 0, stdout);
  });

  test("every program in docs/testing.md and docs/client.md runs as it is written", async () => {
    const blocks = ["testing", "client"].flatMap((page) =>
      [...readFileSync(join(ROOT, `docs/${page}.md`), "utf8").matchAll(/```(\w+) run\n([\s\S]*?)```/g)].map(
        ([, kind = "", source = ""]) => ({ page, kind, source }),
      ),
    );
    assert.equal(blocks.length, 4);
    const hangar = `npx() { shift; node "${join(project, HOME, "bin/hangar.mjs")}" "$@"; }`;
    for (const [at, { page, kind, source }] of blocks.entries()) {
      const file = `${page}-${at}.${kind}`;
      writeFileSync(join(project, file), kind === "sh" ? `set -eu\n${hangar}\n${source}` : source);
      const line = kind === "sh" ? `bash ${file}` : `node ${HOME}/bin/hangar.mjs emulator -- node --test ${file}`;
      const { status, stdout, stderr } = await run(line);
      assert.equal(status, 0, `${file}: ${stdout} ${stderr}`);
      if (kind === "sh") assert.match(stdout, /2030-01-02T12:[\s\S]*as it should be/);
    }
  });

  test("the command runs the platform, calls it, and serves the dashboard", async (t) => {
    const hangar = join(project, HOME, "bin/hangar.mjs");
    const env = { ...process.env, HANGAR_DATA_DIR: "data", HANGAR_LISTEN: "127.0.0.1:0", HANGAR_DRIVER: "sim" };
    const platform = new Child(process.execPath, [hangar, "up"], { env, cwd: project });
    t.after(async () => {
      platform.signal("SIGTERM");
      await platform.ended;
    });
    const base_url = /http:\S+/.exec(await platform.until(/API/))?.[0] ?? "";
    const page = await (await fetch(base_url)).text();
    const script = /src="(\/assets\/[^"]+main\.js)"/.exec(page)?.[1];
    assert.ok(script, page);
    assert.match(await (await fetch(`${base_url}${script}`)).text(), /import /);
    const { status, stdout, stderr } = await run(
      `HANGAR_DATA_DIR=data node ${hangar} apps create web && HANGAR_DATA_DIR=data node ${hangar} backup copy`,
    );
    assert.equal(status, 0, stderr);
    assert.match(stdout, /Backed up/);
  });

  test("the SQLite node for machines is in the package, and needs no other file of it", async (t) => {
    const folder = join(tempDir(), "db");
    cpSync(join(project, HOME, "dist/db-node"), folder, { recursive: true });
    const args = [join(folder, "main.cjs"), "--dir", join(folder, "data"), "--listen", "127.0.0.1:0", "--primary"];
    const node = new Child(process.execPath, args, { cwd: folder });
    t.after(() => node.kill());
    assert.match(await node.until(/listens on/), /http:\/\/127\.0\.0\.1:\d+/);
  });

  test("on a Node that is too old the command prints one line and exits", { skip: noOldNode }, async () => {
    const { status, stdout, stderr } = await shell(`${OLD_NODE} ${HOME}/bin/hangar.mjs apps list`, { cwd: project });
    assert.deepEqual([status, stdout], [1, ""]);
    assert.match(stderr, /^hangar: Node 24 or later is needed; this is v\d+\.\d+\.\d+, \/\S+\n$/);
  });
});
