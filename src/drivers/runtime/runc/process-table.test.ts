import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { suite, type TestContext, test } from "node:test";
import { until } from "../../../../test/support.ts";
import { workOf } from "./process-table.ts";

/** A program that says when it runs; ended with the test. */
async function running(t: TestContext, script: string): Promise<{ child: ChildProcess; pid: number }> {
  const child = spawn(process.execPath, ["-e", `process.stdout.write("up"); ${script}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  assert.ok(child.pid);
  return { child, pid: child.pid };
}

const skip = process.platform === "linux" ? false : "reads /proc";

suite("CPU progress of a process", { skip }, () => {
  test("CPU ticks advance in a process that computes, however busy the host is", async (t) => {
    const { pid } = await running(t, "for (;;);");
    const before = workOf(pid)?.ticks ?? Number.NaN;
    assert.equal(workOf(pid)?.is_runnable, true);
    await until("it has run", () => (workOf(pid)?.ticks ?? 0) > before);
  });

  test("CPU ticks do not advance in a stopped process and are unknown for one that has exited", async (t) => {
    const { child, pid } = await running(t, "for (;;);");
    child.kill("SIGSTOP");
    await until("it has stopped", () => workOf(pid)?.is_runnable === false);
    const stopped = workOf(pid);
    // So long that another program has run.
    await running(t, "");
    assert.deepEqual(workOf(pid), stopped);
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.equal(workOf(pid), undefined);
  });
});
