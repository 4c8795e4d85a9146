/** Programs on terminals inside a machine. The terminal is one of the machine's own, of which we have the other end. */
import { closeSync, constants, fchownSync, openSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Terminal, TerminalEnd, TerminalOptions, TerminalSize } from "#machines/runtime/driver.ts";
import { openPty, type Pty, PtyStream } from "../../linux/pty.ts";
import type { ContainerManager } from "./container-manager.ts";
import { type HelperProcess, type HostProcess, killAll, programsOf, runs, startHelper } from "./helper-process.ts";
import { kill } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";

/** Time for a program to exit after SIGHUP. */
const HANG_UP_MS = 2000;
/** Poll interval for a killed process. */
const GONE_LOOK_MS = 10;
const GONE_LOOKS = 500;

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

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /** Ends those of one machine. A suspended one cannot keep a terminal whose other end is outside. */
  async end(id: string): Promise<void> {
    await Promise.all([...(this.#open.get(id) ?? [])].map((terminal) => terminal.kill()));
  }

  close(): void {
    for (const all of this.#open.values()) for (const terminal of all) terminal.hangUp();
  }
}

class RuncTerminal implements Terminal {
  readonly stream: PtyStream;
  readonly ended: Promise<TerminalEnd>;
  readonly #helper: HostProcess;

  constructor(stream: PtyStream, { helper, ended }: HelperProcess) {
    this.stream = stream;
    this.#helper = helper;
    this.ended = ended;
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

  #processes(): HostProcess[] {
    return runs(this.#helper) ? [this.#helper, ...programsOf(this.#helper)] : [];
  }
}

async function openTerminal(
  containers: ContainerManager,
  record: MachineRecord & { pid: number },
  { term, env, ...wanted }: TerminalOptions,
): Promise<RuncTerminal> {
  const { ours, theirs } = ptyOf(record);
  const stream = new PtyStream(ours);
  try {
    fchownSync(theirs, record.uid_base, record.uid_base);
    stream.resize(wanted);
    const stdio = [theirs, theirs, theirs] as const;
    const named = { ...wanted, env: { TERM: term, ...env } };
    return new RuncTerminal(stream, await startHelper({ containers, record, mode: "open", wanted: named, stdio }));
  } catch (thrown) {
    stream.destroy();
    throw thrown;
  } finally {
    closeSync(theirs);
  }
}

function ptyOf({ pid }: { pid: number }): Pty {
  const root = openSync(`/proc/${pid}/root`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return openPty(root, "dev/pts/ptmx");
  } finally {
    closeSync(root);
  }
}
