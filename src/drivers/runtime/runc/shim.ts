/**
 * The monitor: a small process between the platform and a machine. It starts runc, writes the machine's output to the
 * log, and records the exit; it keeps running when the platform stops. See native/monitor.c.
 */
import { closeSync, constants, mkdirSync, openSync, readFileSync, readSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { spawnLean } from "../../linux/spawn.ts";
import { outsideUnit } from "./delegation.ts";
import type { Layout, MachinePaths } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import { nativeProgram } from "./native-programs.ts";

export interface Shim {
  layout: Layout;
  paths: MachinePaths;
  id: string;
  tty: boolean;
  runc: string;
  /** Directory with the `criu` to use; runc finds it in the PATH. */
  bin?: string;
  /** CPU affinity of the monitor, and so of the machine. */
  affinity?: readonly number[];
  restore?: { images: string; options: readonly string[] };
}

const MONITOR = nativeProgram("monitor");

/** Creates the container, which waits for `release`, or runs again after a restore. Returns its first pid. */
export async function runShim(shim: Shim): Promise<number> {
  const { paths } = shim;
  rmSync(paths.exit, { force: true });
  for (const file of [paths.runc_log, paths.pid]) rmSync(file, { force: true });
  mkdirSync(paths.logs, { recursive: true, mode: 0o700 });
  const errors = openSync(join(paths.run, "monitor.err"), "a", 0o600);
  const pinned = shim.affinity ? ["taskset", "--cpu-list", shim.affinity.join(",")] : [];
  const own = [...pinned, MONITOR, ...ownWords(shim), ...runcWords(shim)];
  const [program = MONITOR, ...rest_args] = outsideUnit(shim.layout.node_id, own);
  const { pipes, ended } = spawnLean(program, rest_args, {
    cwd: paths.run,
    stdio: ["nothing", "nothing", errors, "we read"],
    env: { PATH: `${shim.bin ? `${shim.bin}:` : ""}/usr/sbin:/usr/bin:/sbin:/bin` },
    apart: true,
  });
  closeSync(errors);
  const answer = Number(await firstLine(pipes[3]));
  // The starter exits as soon as the monitor has detached.
  void ended();
  if (!(answer > 0)) throw new Error(`runc: ${reason(paths) ?? "did not start the machine"}`);
  return answer;
}

function ownWords({ paths, tty }: Shim): string[] {
  const { log, exit, pid, monitor_pid } = paths;
  return [log, String(RUNC_LIMITS.log_bytes_alone), exit, pid, monitor_pid, paths.control, tty ? paths.console : "-"];
}

function runcWords({ layout, paths, id, tty, runc, restore }: Shim): string[] {
  const { bundle, pid, runc_log } = paths;
  const verb = restore ? ["restore", "--detach", "--image-path", restore.images, ...restore.options] : ["create"];
  const common = ["--bundle", bundle, "--pid-file", pid, ...(tty ? ["--console-socket", paths.console] : [])];
  return [runc, "--root", layout.runc, "--log", runc_log, ...verb, ...common, id];
}

async function firstLine(stream: Readable | undefined): Promise<string> {
  let text = "";
  for await (const chunk of stream ?? []) {
    text += String(chunk);
    if (text.includes("\n")) break;
  }
  return text;
}

/** The last error of runc. */
function reason(paths: MachinePaths): string | undefined {
  try {
    const lines = readFileSync(paths.runc_log, "utf8").trim().split("\n");
    return lines
      .map((line) => /\bmsg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"'))
      .findLast((text) => text !== undefined);
  } catch {
    return undefined;
  }
}

/** Lets process 1 begin, as `runc start` does, by opening its FIFO. */
export async function release(paths: MachinePaths, isAlive: () => boolean, clock: Clock): Promise<void> {
  const pipe = join(paths.runc_state, "exec.fifo");
  // Non-blocking: an ended process 1 would never open its end.
  const fd = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    // Asked first: a program that is not there ends between two looks at the pipe, and has begun all the same.
    for (let is_alive = isAlive(); !taken(fd); is_alive = isAlive()) {
      if (!is_alive) throw new Error("the machine's first process ended before it began");
      await clock.sleep(1);
    }
  } finally {
    closeSync(fd);
  }
  unlinkSync(pipe);
}

/** Resolves when process 1 has started the machine's first own process, or has exited. */
export async function begun(pid: number, isAlive: () => boolean, clock: Clock): Promise<void> {
  while (isAlive() && children(pid) === "") await clock.sleep(1);
}

function children(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  } catch {
    return "";
  }
}

function taken(fd: number): boolean {
  try {
    return readSync(fd, Buffer.alloc(1)) === 1;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "EAGAIN") return false;
    throw thrown;
  }
}
