/**
 * File systems that a test mounts go away with it, however it ends: the test file runs itself once more in a
 * mount namespace of its own, which the kernel takes down, loop devices included, with its last process.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const INSIDE = "HANGAR_TEST_OWN_MOUNTS";

/** Why nothing can be mounted on this box, or undefined. */
export function mountsMissing(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "mounting a file system needs root on Linux";
  if (!existsSync("/dev/loop-control")) return "there are no loop devices here";
  if (spawnSync("mkfs.ext4", ["-V"]).status !== 0) return "there is no mkfs.ext4 (apt-get install e2fsprogs)";
  if (spawnSync("unshare", ["--mount", "true"]).status !== 0) return "mount namespaces cannot be made here";
  return undefined;
}

/**
 * True when this process has mounts of its own and should run its tests. Otherwise the file has been run in
 * such a process, with the same arguments and output, and this one only hands on its exit code.
 */
export async function ownMounts(file: string): Promise<boolean> {
  if (process.env[INSIDE] === "1" || mountsMissing()) return true;
  // The parent-death signal is for the one case in which no handler of ours can run.
  const command = ["--pdeathsig", "KILL", "unshare", "--mount", process.execPath, ...process.execArgv, file];
  const inside = spawn("setpriv", command, { stdio: "inherit", env: { ...process.env, [INSIDE]: "1" } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => inside.kill(signal));
  process.exitCode = await new Promise<number>((resolve, reject) => {
    inside.on("error", reject);
    inside.on("exit", (code) => resolve(code ?? 1));
  });
  return false;
}
