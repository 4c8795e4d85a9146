/** The tour of the README and the commands of the guides, line by line, as a new user types them. */
import assert from "node:assert/strict";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";

/** Runs every block of a page that is marked with `mark`, in one shell, so that variables carry over. */
async function follow(t: TestContext, page: string, mark: string): Promise<string> {
  const pattern = new RegExp(`\`\`\`sh ${mark}\\n([\\s\\S]*?)\`\`\``, "g");
  const blocks = [...readFileSync(join(ROOT, page), "utf8").matchAll(pattern)].map(([, block = ""]) => block);
  assert.ok(blocks.length > 0, `${page} has commands`);
  const platform = await testPlatform(t);
  const dir = tempDir();
  symlinkSync(platform.data_dir, join(dir, ".hangar"));
  const lines = blocks.join("").split("\n");
  const script = `set -eu -o pipefail\n${NPX}\n${lines
    .map((line) => (line ? `echo '$ '${quote(line)} >&2; ${line}` : ""))
    .join("\n")}`;
  const { status, stdout, stderr } = await shell(script, { cwd: dir, HOME: dir });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  return stdout;
}

const quote = (line: string): string => `'${line.replaceAll("'", "'\\''")}'`;

suite("commands in the documents", () => {
  test("every line of the 60-second tour works", async (t) => {
    const stdout = await follow(t, "README.md", "tour");
    assert.match(stdout, /no: caveat actions: the token allows read, this needs delete\nas it should be/);
    assert.match(stdout, /only app web \(everything\)/);
    assert.doesNotMatch(stdout, /12345/);
  });

  test("every command of the operations guide works", async (t) => {
    assert.match(await follow(t, "docs/operations.md", "operations"), /"ok":true[\s\S]*Backed up[\s\S]*Restored/);
  });

  test("every command of the security guide works", async (t) => {
    assert.match(await follow(t, "docs/security.md", "security"), /\bci\b[\s\S]*\bdashboard\b/);
  });
});
