/** The monitor alone, with a shell script instead of runc. */
import assert from "node:assert/strict";
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { tempDir, until } from "../../../../test/support.ts";
import { parseLog } from "./logs/parse.ts";
import { startOf } from "./process-table.ts";

const MONITOR = join(import.meta.dirname, "native", process.arch, "monitor");
const skip = process.platform !== "linux" || !existsSync(MONITOR) ? "there is no monitor for this box" : undefined;
const LIMIT = 4096;
/** What the monitor writes before each line. */
const STAMPED = "2026-01-01T00:00:00.123456789+00:00 stdout F ".length;

/** Runs `runc`, a shell script that writes the pid of its machine to $PID. */
async function monitor(t: TestContext, runc: string) {
  const dir = tempDir("hangar-monitor");
  const at = (name: string): string => join(dir, name);
  const options: SpawnOptions = {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    env: { ...process.env, PID: at("pid") },
  };
  const args = [at("log"), String(LIMIT), at("exit"), at("pid"), at("own"), at("control"), "-", "/bin/sh", "-c", runc];
  const child = spawn(MONITOR, args, options);
  const exited = once(child, "exit");
  const reported = Number(await text(child.stdio[3] as Readable));
  await exited;
  const read = (name: string): string => (existsSync(at(name)) ? readFileSync(at(name), "utf8") : "");
  const own = Number(read("own"));
  t.after(() => {
    for (const pid of [reported, own]) if (pid > 1 && existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
  });
  const lines = (name = "log"): string[] =>
    parseLog(Buffer.from(read(name))).lines.map(({ stream, message }) => `${stream} ${message}`);
  const ended = async (): Promise<string> => {
    await until("the exit file exists", () => existsSync(at("exit")));
    await until("the monitor goes with its machine", () => startOf(own) === undefined);
    return read("exit");
  };
  return { at, reported, own, lines, ended, read };
}

/** A script for a machine; runc waits until it runs. */
const machine = (script: string): string => `sh -c '${script}' & echo $! > $PID`;

suite("machine monitor", { skip }, () => {
  test("the monitor reports the machine's pid and its exit code", async (t) => {
    const ends: [script: string, status: string][] = [
      ["exit 7", "7"],
      ["exit 0", "0"],
      ["kill -9 $$", "137"],
      ["kill -15 $$", "143"],
    ];
    for (const [script, status] of ends) {
      const { reported, read, ended } = await monitor(t, machine(`sleep 0.05; ${script}`));
      assert.equal(reported, Number(read("pid")));
      assert.equal(await ended(), status, script);
    }
  });

  test("a machine that ends before runc does is not lost", async (t) => {
    // Started in a shell that exits before the machine does, so that only the monitor can reap the machine.
    const begun = `mkfifo $PID.go; (${machine('read x < "$PID.go"; exit 5')}); echo > $PID.go`;
    const { ended } = await monitor(t, `${begun}; while kill -0 $(cat $PID) 2> /dev/null; do sleep 0.01; done`);
    assert.equal(await ended(), "5");
  });

  test("when runc fails no machine and no exit is reported, and runc's message is in the log", async (t) => {
    const { reported, own, at, lines } = await monitor(t, "echo no such thing >&2; exit 1");
    assert.equal(reported, -1);
    await until("it goes", () => startOf(own) === undefined);
    assert.equal(existsSync(at("exit")), false);
    assert.deepEqual(lines(), ["stderr no such thing"]);
  });

  test("every line is in the log with its stream and time before the exit is reported", async (t) => {
    const script = "echo one; echo two >&2; printf unfinished; sleep 0.1; echo -line; printf last";
    const { ended, lines, read } = await monitor(t, machine(script));
    await ended();
    const found = lines();
    // The last line is ended by the monitor, or the next boot's first line would be taken for the rest of it.
    assert.deepEqual(found.toSorted(), ["stderr two", "stdout last", "stdout one", "stdout unfinished-line"]);
    const { lines: stamped, rest } = parseLog(Buffer.from(read("log")));
    assert.deepEqual(rest, []);
    // The monitor counts the days of the calendar by itself.
    for (const { timestamp } of stamped) assert.ok(Math.abs(timestamp - Date.now()) < 600_000, `${timestamp}`);
    assert.match(read("log"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00 std/);
  });

  test("a log at its size limit is rotated, and an externally rotated one is reopened", async (t) => {
    const { at, lines, ended, read } = await monitor(
      t,
      machine(`for i in $(seq 100); do echo $i ${"x".repeat(60)}; done; read x < "$PID.go"; echo more; exit 0`).replace(
        "sh -c",
        "mkfifo $PID.go; sh -c",
      ),
    );
    await until("it has written", () => lines().some((line) => line.startsWith("stdout 100 ")));
    assert.ok(read("log").length <= LIMIT && read("log.1").length <= LIMIT);
    const numbers = [...lines("log.1"), ...lines()]
      .filter((line) => line.startsWith("stdout "))
      .map((line) => Number(line.split(" ")[1]));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => 100 - numbers.length + 1 + index),
      "one after the other up to the last",
    );
    renameSync(at("log"), at("aside"));
    const control = openSync(at("control"), "r+");
    writeSync(control, "\n");
    closeSync(control);
    await until("it has opened another", () => existsSync(at("log")));
    writeFileSync(at("pid.go"), "go\n");
    assert.equal(await ended(), "0");
    assert.deepEqual(lines(), ["stdout more"]);
  });

  test("what a flood loses is counted in the log, and what was archived before is not", async (t) => {
    const [COUNT, line] = [1000, "x".repeat(60)];
    // The second time enough for one more file.
    const script = `for i in $(seq ${COUNT}); do echo ${line}; done; read x < "$PID.go"; for i in $(seq 39); do echo ${line}; done`;
    const { at, ended, read } = await monitor(t, machine(script).replace("sh -c", "mkfifo $PID.go; sh -c"));
    const told = (name: string): number =>
      parseLog(Buffer.from(read(name))).lines.reduce((sum, { lost = 0 }) => sum + lost, 0);
    const held = (): number => read("log").length + read("log.1").length;
    const written = COUNT * (STAMPED + line.length + 1);
    await until("all is held or told", () => told("log") + told("log.1") + held() >= written);
    const all = told("log") + told("log.1") + held();
    t.diagnostic(`${told("log") + told("log.1")} bytes told, ${held()} held, ${written} written`);
    // The words about what was lost are bytes of the log too.
    assert.ok(all < 1.1 * written, `${all} of ${written}`);
    assert.ok(told("log") > 0 && told("log.1") > 0);
    chmodSync(at("log.1"), 0o700);
    writeFileSync(at("pid.go"), "go\n");
    assert.equal(await ended(), "0");
    assert.ok(read("log").length > 0 && told("log.1") > 0);
    assert.equal(told("log"), 0);
  });

  test("signals do not end the monitor, and it uses little memory", async (t) => {
    const { own, ended, read, reported } = await monitor(t, machine("exec sleep 1000"));
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGUSR1"]) process.kill(own, signal);
    const kilobytes = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${own}/smaps_rollup`, "utf8"))?.[1]);
    assert.ok(kilobytes < 64, `${kilobytes} KB`);
    t.diagnostic(`${kilobytes} KB`);
    assert.equal(read("exit"), "");
    process.kill(reported, "SIGTERM");
    assert.equal(await ended(), "143");
  });
});
