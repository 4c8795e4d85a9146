import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { tempDir } from "../../test/support.ts";

const MODULE = join(import.meta.dirname, "standard-output.ts");
const LINES = 40_000;
/** More than any pipe holds, in lines that tell their order; says on stderr when the last one was given away. */
const PROGRAM = `
import { isTerminal, writeOut } from "${MODULE}";
for (let line = 0; line < ${LINES}; line++) writeOut(line + " of ${LINES} \u00e9\\n");
process.stderr.write(String(isTerminal()) + "\\n");
`;
const WANTED = Array.from({ length: LINES }, (_, line) => `${line} of ${LINES} \u00e9\n`).join("");
const ARGS = ["--input-type=module", "--eval", PROGRAM];

suite("standard output of a command", () => {
  test("is written whole and in order to a file", () => {
    const file = join(tempDir(), "out");
    const out = openSync(file, "w");
    const { status, stderr } = spawnSync(process.execPath, ARGS, { stdio: ["ignore", out, "pipe"], encoding: "utf8" });
    closeSync(out);
    assert.deepEqual([status, stderr], [0, "false\n"]);
    assert.equal(readFileSync(file, "utf8"), WANTED);
  });

  test("waits for a reader that is slower, also when the pipe does not block", async () => {
    // As a shell's other programs may leave a pipe that they share.
    const unblock = "use Fcntl; fcntl(STDOUT, F_SETFL, O_WRONLY | O_NONBLOCK) or die; exec @ARGV or die";
    const child = spawn("perl", ["-e", unblock, process.execPath, ...ARGS], { stdio: ["ignore", "pipe", "pipe"] });
    const exited = once(child, "exit");
    // Nothing is read until the program has given away everything.
    const [first] = (await once(child.stderr, "data")) as [Buffer];
    assert.equal(first.toString(), "false\n");
    assert.equal(await text(child.stdout), WANTED);
    assert.deepEqual(await exited, [0, null]);
  });

  test("ends the command as SIGPIPE would when the reader stops, and says nothing", () => {
    const line = `"$0" "$@" | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", line, process.execPath, ...ARGS], { encoding: "utf8" });
    assert.deepEqual([stdout, stderr], [`0 of ${LINES} \u00e9\n141\n`, ""]);
  });
});
