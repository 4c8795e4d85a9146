/** Programs that the helper (native/terminal.c) runs inside a machine and reports the end of. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { ProgramOptions, TerminalEnd } from "#machines/runtime/driver.ts";
import { type Descriptor, spawnLean } from "../../linux/spawn.ts";
import type { ContainerManager } from "./container-manager.ts";
import { environment } from "./exec.ts";
import { bringHelpers, HELPER_PATH } from "./helper.ts";
import { guestProcess } from "./oci-config.ts";
import { isAlive, kill, numberIn, startOf } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";

/** Reported for a program that ended without an exit code, because its machine stopped or it was killed. */
const KILLED: TerminalEnd = { exit_code: 137, exit_signal: 9 };

export interface HostProcess {
  pid: number;
  start: string | undefined;
}

interface HelperInput {
  containers: ContainerManager;
  record: MachineRecord & { pid: number };
  /** `open` has a terminal, `run` has pipes. */
  mode: "open" | "run";
  wanted: ProgramOptions;
  /** Its descriptors 0 to 2. */
  stdio: readonly [Descriptor, Descriptor, Descriptor];
}

export interface HelperProcess {
  helper: HostProcess;
  /** Our ends of its pipes. */
  pipes: readonly (Socket | undefined)[];
  ended: Promise<TerminalEnd>;
}

/** runc starts the helper and exits; the helper starts the program and stays. */
export async function startHelper(input: HelperInput): Promise<HelperProcess> {
  const { containers, record, wanted, stdio } = input;
  const { layout, runc } = containers.parts;
  const paths = containers.paths(record.id);
  const name = join(paths.run, `program-${randomUUID()}`);
  const files = { process: `${name}.json`, pid: `${name}.pid`, log: `${name}.log` };
  bringHelpers(paths.svc);
  writeFileSync(files.process, JSON.stringify(processOf(input.mode, record, wanted)), { mode: 0o600 });
  try {
    const how = ["--detach", "--preserve-fds", "1", "--process", files.process, "--pid-file", files.pid];
    const args = ["--root", layout.runc, "--log", files.log, "exec", ...how, record.id];
    const spawned = spawnLean(runc, args, { stdio: [...stdio, "we read"], owner: record.uid_base });
    const [stdin, stdout, stderr, pipe] = spawned.pipes;
    const report = pipe ? text(pipe) : Promise.resolve("");
    const ended = report.then(endOf, () => KILLED);
    const code = await spawned.ended();
    if (code !== 0) {
      for (const one of spawned.pipes) one?.destroy();
      const said = readText(files.log).trim().split("\n").at(-1);
      throw new Error(`no program in machine ${record.id}: ${said || `runc ended with ${code}`}`);
    }
    const pid = numberIn(files.pid) ?? 0;
    return { helper: { pid, start: startOf(pid) }, pipes: [stdin, stdout, stderr], ended };
  } finally {
    for (const file of Object.values(files)) rmSync(file, { force: true });
  }
}

function processOf(mode: HelperInput["mode"], record: MachineRecord & { pid: number }, wanted: ProgramOptions) {
  const { command, env = {}, folder } = wanted;
  const kept = environment(record.pid).filter((variable) => !Object.hasOwn(env, variable.split("=", 1)[0] ?? ""));
  const variables = [...kept, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  // A folder that was asked for must exist.
  const start = folder === undefined ? [mode, record.folder ?? "/"] : [`${mode}-in`, folder];
  return guestProcess([HELPER_PATH, ...start, ...command], variables, "/");
}

function endOf(report: string): TerminalEnd {
  if (!/^\d+\n$/.test(report)) return KILLED;
  const exit_code = Number(report);
  return exit_code > 128 && exit_code <= 192 ? { exit_code, exit_signal: exit_code - 128 } : { exit_code };
}

/** The helper's own program, but not that program's children. */
export function programsOf(helper: HostProcess): HostProcess[] {
  if (!runs(helper)) return [];
  const { pid } = helper;
  const children = readText(`/proc/${pid}/task/${pid}/children`).split(" ").map(Number).filter(Boolean);
  return children.map((child) => ({ pid: child, start: startOf(child) }));
}

export const runs = ({ pid, start }: HostProcess): boolean => isAlive(pid, start);

export function killAll(processes: readonly HostProcess[]): void {
  for (const one of processes) if (runs(one)) kill(one.pid, "SIGKILL");
}

function readText(file: string): string {
  try {
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  } catch {
    return "";
  }
}
