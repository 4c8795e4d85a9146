/** The tour of the README, line by line, as a new user types it. */
import assert from "node:assert/strict";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";

const root = join(import.meta.dirname, "../..");

test("every line of the 60-second tour works", async (t) => {
  const [, tour] = /```sh tour\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8")) ?? [];
  assert.ok(tour, "the README has a tour");
  const platform = await testPlatform(t);
  const dir = tempDir();
  symlinkSync(platform.data_dir, join(dir, ".hangar"));
  // One shell for all lines, so that variables carry over; `npx hangar` is the checkout's own command.
  const npx = `npx() { shift; "${process.execPath}" "${join(root, "bin/hangar.mjs")}" "$@"; }`;
  const script = `set -eu -o pipefail\n${npx}\n${tour
    .split("\n")
    .map((line) => (line ? `echo '$ '${quote(line)} >&2; ${line}` : ""))
    .join("\n")}`;
  const { status, stdout, stderr } = await shell(script, { cwd: dir });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /no: caveat actions: the token allows read, this needs delete\nas it should be/);
  assert.match(stdout, /only app web \(everything\)/);
  assert.doesNotMatch(stdout, /12345/);
});

const quote = (line: string): string => `'${line.replaceAll("'", "'\\''")}'`;
