/** Runs a command inside a running machine. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { Exec, ExecResult } from "#machines/runtime/driver.ts";
import type { ContainerManager } from "./container-manager.ts";
import { bringHelpers, HELPER_PATH } from "./helper.ts";
import { guestProcess } from "./oci-config.ts";
import { kill, numberIn } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";

interface ExecParts {
  containers: ContainerManager;
  record: MachineRecord & { pid: number };
  command: Exec;
  signal: AbortSignal;
}

/** Time for runc to report the process it started, and to exit after it. */
const BEGIN_MS = 10;
const BEGIN_TRIES = 2000;
const AFTER_MS = 1000;

/** Exit code of a command that timed out, as `timeout` reports it. */
const TIMED_OUT = 124;

export async function execIn({ containers, record, command, signal }: ExecParts): Promise<ExecResult> {
  const { layout, runc } = containers.parts;
  const name = join(containers.paths(record.id).run, `exec-${randomUUID()}`);
  const files = { process: `${name}.json`, pid: `${name}.pid` };
  bringHelpers(containers.paths(record.id).svc);
  const words = [HELPER_PATH, "exec", record.folder ?? "/", ...command.command];
  writeFileSync(files.process, JSON.stringify(guestProcess(words, environment(record.pid), "/")), { mode: 0o600 });
  try {
    const args = ["--root", layout.runc, "exec", "--process", files.process, "--pid-file", files.pid, record.id];
    return await run(runc, args, command, files.pid, signal);
  } finally {
    for (const file of Object.values(files)) rmSync(file, { force: true });
  }
}

/** The environment of the machine's first own process, so that no copy of the secrets is stored. */
export function environment(init: number): string[] {
  try {
    const [child] = readFileSync(`/proc/${init}/task/${init}/children`, "utf8").split(" ");
    const variables = readFileSync(`/proc/${child}/environ`, "utf8").split("\0").filter(Boolean);
    if (variables.length > 0) return variables;
  } catch {
    // It has just exited; so will the command.
  }
  return ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"];
}

async function run(
  runc: string,
  args: string[],
  { stdin, timeout_ms }: Exec,
  pid_file: string,
  signal: AbortSignal,
): Promise<ExecResult> {
  const child = spawn(runc, args, { stdio: ["pipe", "pipe", "pipe"] });
  const output = { stdout: capped(), stderr: capped() };
  child.stdout.on("data", output.stdout.take);
  child.stderr.on("data", output.stderr.take);
  child.stdin.on("error", () => {}).end(stdin ?? "");
  let late = false;
  let tries = 0;
  const end = (): void => {
    late = true;
    // Whichever comes first, the timeout or the abort, cancels the other.
    clearTimeout(timer);
    const pid = numberIn(pid_file);
    if (pid) kill(pid, "SIGKILL");
    // Kills the command first: killing runc alone would leave it running, even when it is only about to begin. runc
    // then exits by itself; it is killed when a child of the command holds its output open.
    const known = pid !== undefined || ++tries > BEGIN_TRIES;
    timer = known ? setTimeout(() => child.kill("SIGKILL"), AFTER_MS) : setTimeout(end, BEGIN_MS);
  };
  let timer = setTimeout(end, timeout_ms);
  signal.addEventListener("abort", end, { once: true });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    signal.throwIfAborted();
    const stderr = output.stderr.text();
    const note = late ? `${stderr}\nended after ${timeout_ms / 1000} s\n` : stderr;
    const exit_code = late ? TIMED_OUT : (code ?? -1);
    const by_signal = exit_code > 128 && exit_code <= 192 ? { exit_signal: exit_code - 128 } : {};
    return { exit_code, ...by_signal, stdout: output.stdout.text(), stderr: note };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Keeps the first bytes of an output; the rest is drained, so that the command does not block. */
function capped() {
  const pieces: Buffer[] = [];
  let left: number = MACHINE_LIMITS.exec_output_bytes;
  return {
    take(piece: Buffer) {
      if (left > 0) pieces.push(piece.subarray(0, left));
      left -= piece.length;
    },
    text: () => `${Buffer.concat(pieces).toString("utf8")}${left < 0 ? "\n… cut (limit exec_output_bytes)\n" : ""}`,
  };
}
