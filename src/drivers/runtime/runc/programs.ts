/** Programs with separate streams inside a machine: pipes whose other ends are ours. */
import { setTimeout as pause } from "node:timers/promises";
import type { MachineProcess, ProgramOptions, TerminalEnd } from "#machines/runtime/driver.ts";
import type { ContainerManager } from "./container-manager.ts";
import { type HelperProcess, type HostProcess, killAll, programsOf, runs, startHelper } from "./helper-process.ts";
import { kill } from "./process-table.ts";
import type { MachineRecord } from "./record.ts";

/** Poll interval for a killed process. */
const GONE_LOOK_MS = 10;
const GONE_LOOKS = 500;

/** Open programs of this host's machines. After the end of our process they run on, with broken pipes. */
export class Programs {
  readonly #containers: ContainerManager;
  readonly #open = new Map<string, Set<RuncProgram>>();

  constructor(containers: ContainerManager) {
    this.#containers = containers;
  }

  async open(
    record: MachineRecord & { pid: number },
    wanted: ProgramOptions,
    signal: AbortSignal,
  ): Promise<MachineProcess> {
    const stdio = ["we write", "we read", "we read"] as const;
    const program = new RuncProgram(
      await startHelper({ containers: this.#containers, record, mode: "run", wanted, stdio }),
    );
    const all = this.#open.get(record.id) ?? new Set();
    this.#open.set(record.id, all.add(program));
    void program.closed.then(() => {
      all.delete(program);
      if (all.size === 0 && this.#open.get(record.id) === all) this.#open.delete(record.id);
    });
    if (signal.aborted) program.kill();
    signal.throwIfAborted();
    return program;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /** Ends those of one machine. A suspended one cannot keep pipes whose other ends are outside. */
  async end(id: string): Promise<void> {
    await Promise.all([...(this.#open.get(id) ?? [])].map((program) => program.gone()));
  }

  close(): void {
    for (const all of this.#open.values()) for (const program of all) program.kill();
  }
}

class RuncProgram implements MachineProcess {
  readonly stdin: MachineProcess["stdin"];
  readonly stdout: MachineProcess["stdout"];
  readonly stderr: MachineProcess["stderr"];
  readonly ended: Promise<TerminalEnd>;
  /** Resolves when it was killed: its opener has no more use for it. */
  readonly closed: Promise<void>;
  readonly #closed = Promise.withResolvers<void>();
  readonly #helper: HostProcess;

  constructor({ helper, pipes, ended }: HelperProcess) {
    const [stdin, stdout, stderr] = pipes;
    if (!stdin || !stdout || !stderr) throw new Error("a program has three pipes");
    // EPIPE when the program does not read what it is sent.
    stdin.on("error", () => {});
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    this.ended = ended;
    this.closed = this.#closed.promise;
    this.#helper = helper;
  }

  signal(name: string): void {
    for (const { pid } of programsOf(this.#helper)) kill(-pid, name as NodeJS.Signals);
  }

  kill(): void {
    this.signal("SIGKILL");
    for (const stream of [this.stdin, this.stdout, this.stderr]) stream.destroy();
    this.#closed.resolve();
  }

  /** Resolves when it is completely removed. */
  async gone(): Promise<void> {
    const processes = [this.#helper, ...programsOf(this.#helper)];
    this.kill();
    killAll(processes);
    for (let attempt = 0; attempt < GONE_LOOKS && processes.some(runs); attempt++) await pause(GONE_LOOK_MS);
  }
}
