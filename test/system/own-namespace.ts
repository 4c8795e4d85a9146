/** A test file that runs itself once more in its own namespace, which is removed with it, however it ends. */
import { spawn } from "node:child_process";

const INSIDE = "HANGAR_TEST_INSIDE";

/**
 * True when this process is inside and should run its tests. Otherwise `command` has run the file in such a process,
 * with the same arguments and output, and this one only hands on its exit code.
 */
export async function inside(command: readonly string[], file: string): Promise<boolean> {
  if (process.env[INSIDE] === "1") return true;
  // The parent-death signal is for the one case in which no handler of ours can run.
  const args = ["--pdeathsig", "KILL", ...command, process.execPath, ...process.execArgv, file];
  const child = spawn("setpriv", args, { stdio: "inherit", env: { ...process.env, [INSIDE]: "1" } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
  return false;
}
