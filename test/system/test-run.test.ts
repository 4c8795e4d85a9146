/** `npm test` as a person runs it: the block at its end, settings of the caller, and a run that is broken off. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir, until } from "../support.ts";
import { Child, ROOT } from "./child.ts";

/** A project with the checkout's own test runner and these tests. */
function project(files: Record<string, string>): string {
  const dir = tempDir("hangar-run");
  mkdirSync(join(dir, "test/system"), { recursive: true });
  for (const name of ["node_modules", "package.json"]) symlinkSync(join(ROOT, name), join(dir, name));
  // The runner looks for tests beside itself.
  mkdirSync(join(dir, "scripts"));
  for (const name of ["run-tests.ts", "test-groups.ts"])
    writeFileSync(join(dir, "scripts", name), readFileSync(join(ROOT, "scripts", name)));
  symlinkSync(join(ROOT, "scripts/test-run"), join(dir, "scripts/test-run"));
  mkdirSync(join(dir, "src"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

function run(dir: string, more: NodeJS.ProcessEnv = {}): Child {
  // By this a test runner knows that it runs inside another, and runs nothing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Child(process.execPath, [join(dir, "scripts/run-tests.ts")], { cwd: dir, env: { ...env, ...more } });
}

suite("npm test", () => {
  test("the run ends with counts, skipped tests with reasons, and each failure with its reason", async () => {
    const dir = project({
      "test/some.test.ts": `import { suite, test } from "node:test"; import assert from "node:assert/strict";
suite("a module", () => {
  test("passes", () => {});
  test("waits for hardware", { skip: "this box has no wings" }, () => {});
  test("fails", () => assert.equal(1 + 1, 3, "one and one"));
});`,
      "test/system/other.test.ts": `import { test } from "node:test"; test("also passes", () => {});`,
    });
    const child = run(dir);
    const { code } = await child.ended;
    const end = child.lines.slice(child.lines.findIndex((line) => / passed, /.test(line)));
    assert.equal(code, 1);
    assert.match(end[0] ?? "", /^2 passed, 1 failed, 1 skipped, in \d+ s$/);
    assert.match(
      end.join("\n"),
      /Skipped:\n {2}1 × this box has no wings\nFailed: test\/some\.test\.ts: a module › fails\n.*one and one/,
    );
  });

  test("tests inherit no settings of the caller, and leave no folder behind", async () => {
    const dir = project({
      "test/some.test.ts": `import { test } from "node:test"; import assert from "node:assert/strict"; import { mkdtempSync } from "node:fs"; import { tmpdir } from "node:os";
test("sees no settings", () => {
  mkdtempSync(tmpdir() + "/left-");
  assert.deepEqual(Object.keys(process.env).filter((name) => /^HANGAR_(?!TEST_RUN)/.test(name)), []);
});`,
    });
    const tmp = tempDir();
    const child = run(dir, { HANGAR_DATA_DIR: "/somewhere", HANGAR_LISTEN: "127.0.0.1:1", TMPDIR: tmp });
    const { code } = await child.ended;
    assert.equal(code, 0, child.lines.join("\n"));
    assert.deepEqual(readdirSync(tmp), []);
  });

  test("SIGTERM ends the run and every process it started", async () => {
    const tmp = tempDir();
    const file = join(tempDir(), "pid");
    const dir = project({
      "test/system/long.test.ts": `import { test } from "node:test"; import { spawn } from "node:child_process"; import { writeFileSync } from "node:fs";
test("never ends", async () => {
  const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  child.unref();
  writeFileSync(${JSON.stringify(file)}, String(child.pid));
  await new Promise(() => setInterval(() => {}, 1000));
});`,
    });
    const child = run(dir, { TMPDIR: tmp });
    await until("the test runs", () => existsSync(file));
    const pid = Number(readFileSync(file, "utf8"));
    assert.ok(existsSync(`/proc/${pid}`));
    child.signal("SIGTERM");
    assert.equal((await child.ended).code, 143);
    await until("what the test started is gone", () => !existsSync(`/proc/${pid}`));
    assert.deepEqual(readdirSync(tmp), []);
  });
});
