/** A program of somebody else, which runs until the test ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";

export function startProgram(t: Pick<TestContext, "after">, program: string, args: readonly string[]): ChildProcess {
  const child = spawn(program, args, { stdio: "ignore" });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  return child;
}
