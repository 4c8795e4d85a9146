/** Programs on terminals inside a machine. The terminal is one of the machine's own, of which we have the other end. */
import { randomUUID } from "node:crypto";
import { closeSync, constants, existsSync, fchownSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import type { Terminal, TerminalEnd, TerminalOptions, TerminalSize } from "#machines/runtime/driver.ts";
import { openPty, type Pty, PtyStream } from "../../linux/pty.ts";
import { type Spawned, spawnLean } from "../../linux/spawn.ts";
import type { ContainerManager } from "./container-manager.ts";
import { environment } from "./exec.ts";
import { bringHelper, HELPER_PATH } from "./helper.ts";
import { guestProcess } from "./oci-config.ts";
import { isAlive, kill, numberIn, startOf } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";

/** Time for a program to exit after SIGHUP. */
const HANG_UP_MS = 2000;
/** Poll interval for a killed process. */
const GONE_LOOK_MS = 10;
const GONE_LOOKS = 500;
/** Reported for a program that ended without an exit code, because its machine stopped or it was killed. */
const KILLED: TerminalEnd = { exit_code: 137, exit_signal: 9 };

/** Open terminals of this host's machines. They end with our process: the kernel sends SIGHUP. */
export class Terminals {
  readonly #containers: ContainerManager;
  readonly #open = new Map<string, Set<RuncTerminal>>();

  constructor(containers: ContainerManager) {
    this.#containers = containers;
  }

  async open(
    record: MachineRecord & { pid: number },
    wanted: TerminalOptions,
    signal: AbortSignal,
  ): Promise<RuncTerminal> {
    const terminal = await openTerminal(this.#containers, record, wanted);
    const all = this.#open.get(record.id) ?? new Set();
    this.#open.set(record.id, all.add(terminal));
    terminal.stream.once("close", () => {
      all.delete(terminal);
      if (all.size === 0 && this.#open.get(record.id) === all) this.#open.delete(record.id);
    });
    if (signal.aborted) terminal.hangUp();
    signal.throwIfAborted();
    return terminal;
  }

  /** Ends those of one machine. A suspended one cannot keep a terminal whose other end is outside. */
  async end(id: string): Promise<void> {
    await Promise.all([...(this.#open.get(id) ?? [])].map((terminal) => terminal.kill()));
  }

  close(): void {
    for (const all of this.#open.values()) for (const terminal of all) terminal.hangUp();
  }
}

interface Process {
  pid: number;
  start: string | undefined;
}

class RuncTerminal implements Terminal {
  readonly stream: PtyStream;
  readonly ended: Promise<TerminalEnd>;
  readonly #helper: Process;

  constructor(stream: PtyStream, helper: Process, report: Promise<string>) {
    this.stream = stream;
    this.#helper = helper;
    this.ended = report.then(endOf, () => KILLED);
    void this.ended.then(() => stream.finish());
  }

  resize(size: TerminalSize): void {
    this.stream.resize(size);
  }

  signal(name: string): void {
    const group = this.stream.group();
    if (group !== undefined) kill(-group, name as NodeJS.Signals);
  }

  hangUp(): void {
    if (this.stream.destroyed) return;
    const processes = this.#processes();
    this.stream.destroy();
    setTimeout(() => killAll(processes), HANG_UP_MS).unref();
  }

  /** Resolves when it is completely removed. */
  async kill(): Promise<void> {
    const processes = this.#processes();
    this.stream.destroy();
    killAll(processes);
    for (let attempt = 0; attempt < GONE_LOOKS && processes.some(runs); attempt++) await pause(GONE_LOOK_MS);
  }

  /** The helper and its program, but not the program's children. */
  #processes(): Process[] {
    const { pid } = this.#helper;
    if (!runs(this.#helper)) return [];
    const children = readText(`/proc/${pid}/task/${pid}/children`).split(" ").map(Number).filter(Boolean);
    return [this.#helper, ...children.map((child) => ({ pid: child, start: startOf(child) }))];
  }
}

const runs = ({ pid, start }: Process): boolean => isAlive(pid, start);

function killAll(processes: readonly Process[]): void {
  for (const one of processes) if (runs(one)) kill(one.pid, "SIGKILL");
}

function endOf(report: string): TerminalEnd {
  if (!/^\d+\n$/.test(report)) return KILLED;
  const exit_code = Number(report);
  return exit_code > 128 && exit_code <= 192 ? { exit_code, exit_signal: exit_code - 128 } : { exit_code };
}

async function openTerminal(
  containers: ContainerManager,
  record: MachineRecord & { pid: number },
  wanted: TerminalOptions,
): Promise<RuncTerminal> {
  const paths = containers.paths(record.id);
  const name = join(paths.run, `terminal-${randomUUID()}`);
  const files = { process: `${name}.json`, pid: `${name}.pid`, log: `${name}.log` };
  bringHelper(paths.svc);
  writeFileSync(files.process, JSON.stringify(processOf(record, wanted)), { mode: 0o600 });
  const pty = ptyOf(record);
  try {
    fchownSync(pty.theirs, record.uid_base, record.uid_base);
    const { stream, report } = await begin(containers, record.id, pty, wanted, files);
    const pid = numberIn(files.pid) ?? 0;
    return new RuncTerminal(stream, { pid, start: startOf(pid) }, report);
  } finally {
    closeSync(pty.theirs);
    for (const file of Object.values(files)) rmSync(file, { force: true });
  }
}

/** runc starts the helper and exits; the helper starts the program and stays. */
async function begin(
  containers: ContainerManager,
  id: string,
  { ours, theirs }: Pty,
  size: TerminalSize,
  files: { process: string; pid: string; log: string },
): Promise<{ stream: PtyStream; report: Promise<string> }> {
  const { layout, runc } = containers.parts;
  const stream = new PtyStream(ours);
  let spawned: Spawned;
  try {
    stream.resize(size);
    const how = ["--detach", "--preserve-fds", "1", "--process", files.process, "--pid-file", files.pid];
    const args = ["--root", layout.runc, "--log", files.log, "exec", ...how, id];
    spawned = spawnLean(runc, args, { stdio: [theirs, theirs, theirs, "we read"] });
  } catch (thrown) {
    stream.destroy();
    throw thrown;
  }
  const [, , , pipe] = spawned.pipes;
  const report = pipe ? text(pipe) : Promise.resolve("");
  report.catch(() => {});
  const code = await spawned.ended();
  if (code !== 0) {
    stream.destroy();
    pipe?.destroy();
    const said = existsSync(files.log) ? readText(files.log).trim().split("\n").at(-1) : undefined;
    throw new Error(`no terminal in machine ${id}: ${said || `runc ended with ${code}`}`);
  }
  return { stream, report };
}

function ptyOf({ pid }: { pid: number }): Pty {
  const root = openSync(`/proc/${pid}/root`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return openPty(root, "dev/pts/ptmx");
  } finally {
    closeSync(root);
  }
}

const processOf = ({ pid, folder = "/" }: MachineRecord & { pid: number }, { command, term }: TerminalOptions) => {
  const variables = environment(pid).filter((variable) => !variable.startsWith("TERM="));
  return guestProcess([HELPER_PATH, "open", folder, ...command], [...variables, `TERM=${term}`], "/");
};

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
