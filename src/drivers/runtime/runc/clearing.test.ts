import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir, until } from "../../../../test/support.ts";
import { outliving } from "../../linux/outlive.ts";
import { type ClearParts, endPrograms } from "./clearing.ts";
import { type Layout, pathsOf } from "./layout.ts";

const LINUX = process.platform === "linux" ? false : "it reads /proc";

/** Starts a program that keeps running; resolves once /proc shows its arguments. */
async function stays(t: TestContext, file: string, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(file, args, { stdio: ["pipe", "ignore", "ignore"] });
  t.after(() => child.kill("SIGKILL"));
  await until("it has started", () => readFileSync(`/proc/${child.pid}/cmdline`, "utf8").startsWith(file));
  return child;
}

suite("leftovers of a boot", { skip: LINUX }, () => {
  test("leftover monitor and runc processes are killed, other programs with their files open are not", async (t) => {
    const dir = tempDir();
    const layout = {
      machines: dir,
      containers: join(dir, "boots"),
      logs: dir,
      exits: dir,
      runc: dir,
      memory: dir,
      unfenced: dir,
    } as Layout;
    const { run } = pathsOf({ ...layout, node_id: "n" }, "m1");
    mkdirSync(run, { recursive: true });
    const log = join(run, "runc.log");
    writeFileSync(log, "");
    // A shell by another name stands in for the monitor and runc: what counts is how they are called.
    const named = (name: string): string => {
      copyFileSync("/bin/sh", join(dir, name));
      chmodSync(join(dir, name), 0o755);
      return join(dir, name);
    };
    const waits = ["-c", "read x; true", "sh", `${run}/bundle`];
    const ours: ChildProcess[] = [];
    for (const name of ["monitor", "runc", "criu"]) ours.push(await stays(t, named(name), waits));
    // One that is still on its way out of the service.
    const [sh = "", ...args] = outliving(["monitor", log], [dir]);
    ours.push(await stays(t, sh, [args[0] ?? "", `read x; ${args[1] ?? ""}`, ...args.slice(2)]));
    const theirs = [await stays(t, "tail", ["-f", log]), await stays(t, "sh", ["-c", "read x; true", "vim", log])];
    const ended = ours.map((child) => new Promise((resolve) => child.once("exit", resolve)));
    await endPrograms({ layout: { ...layout, node_id: "n" }, clock: systemClock } as ClearParts, "m1");
    await Promise.all(ended);
    for (const { pid, exitCode, signalCode } of theirs)
      assert.deepEqual([exitCode, signalCode], [null, null], `${pid}`);
  });
});
