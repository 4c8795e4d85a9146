/** A terminal without a program: enough of a shell to see that keys, sizes, interrupts and exit codes arrive. */
import { Duplex } from "node:stream";
import type { Clock } from "#core/clock.ts";
import type { ExecResult, Terminal, TerminalEnd, TerminalOptions, TerminalSize } from "#machines/runtime/driver.ts";

type Run = (command: readonly string[]) => Promise<Pick<ExecResult, "exit_code" | "stdout" | "stderr">>;

const PROMPT = "$ ";
const KEY = { interrupt: "\u0003", end: "\u0004", erase: "\u007f" };
const KILLED: TerminalEnd = { exit_code: 137, exit_signal: 9 };
const HUNG_UP: TerminalEnd = { exit_code: 129, exit_signal: 1 };
const INTERRUPTED = 130;

/** Terminals by machine, so that they end with it. */
export class SimTerminals {
  readonly #open = new Map<string, Set<SimTerminal>>();

  open(id: string, wanted: TerminalOptions, run: Run, clock: Clock): Terminal {
    const terminal = new SimTerminal(wanted, run, clock);
    const all = this.#open.get(id) ?? new Set();
    this.#open.set(id, all.add(terminal));
    void terminal.ended.then(() => {
      all.delete(terminal);
      if (all.size === 0 && this.#open.get(id) === all) this.#open.delete(id);
    });
    return terminal;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  end(id: string): void {
    for (const terminal of this.#open.get(id) ?? []) terminal.end(KILLED);
  }

  close(): void {
    for (const id of this.#open.keys()) this.end(id);
  }
}

class SimTerminal implements Terminal {
  readonly stream: Duplex;
  readonly ended: Promise<TerminalEnd>;
  readonly #ended = Promise.withResolvers<TerminalEnd>();
  readonly #run: Run;
  readonly #clock: Clock;
  #size: TerminalSize;
  #line = "";
  #last = 0;
  #over = false;
  /** Aborts the foreground command. */
  #busy: AbortController | undefined;
  /** Waiting for the stream to drain. */
  readonly #waiting: (() => void)[] = [];

  constructor({ command, rows, cols }: TerminalOptions, run: Run, clock: Clock) {
    this.ended = this.#ended.promise;
    this.#run = run;
    this.#clock = clock;
    this.#size = { rows, cols };
    this.stream = new Duplex({
      read: () => this.#goOn(),
      write: (keys: Buffer, _encoding, done) => void this.#type(keys.toString()).then(() => done(), done),
    });
    this.stream.once("close", () => this.end(HUNG_UP));
    if (/(^|\/)(ba|a)?sh$/.test(command[0] ?? "")) void this.#say(PROMPT);
    else void this.#execute(command.join(" ")).then(() => this.end({ exit_code: this.#last }));
  }

  resize(size: TerminalSize): void {
    this.#size = size;
  }

  signal(name: string): void {
    if (name === "SIGINT") this.#interrupt();
    else this.end(KILLED);
  }

  hangUp(): void {
    this.stream.destroy();
  }

  end(how: TerminalEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended.resolve(how);
    this.#busy?.abort();
    this.#goOn();
    if (!this.stream.destroyed) this.stream.push(null);
  }

  /** Echoes keys; a line is executed, and keys meanwhile wait, except the interrupt. */
  async #type(keys: string): Promise<void> {
    for (const key of keys) {
      if (key === KEY.interrupt) this.#interrupt();
      else if (key === KEY.end && this.#line === "") this.end({ exit_code: this.#last });
      else if (key === KEY.erase) await this.#erase();
      else if (key === "\r" || key === "\n") await this.#enter();
      else {
        this.#line += key;
        await this.#say(key);
      }
    }
  }

  #interrupt(): void {
    this.#line = "";
    this.#last = INTERRUPTED;
    void this.#say("^C\r\n");
    if (this.#busy) this.#busy.abort();
    else void this.#say(PROMPT);
  }

  async #erase(): Promise<void> {
    if (this.#line === "") return;
    this.#line = this.#line.slice(0, -1);
    await this.#say("\b \b");
  }

  async #enter(): Promise<void> {
    const line = this.#line.trim();
    this.#line = "";
    await this.#say("\r\n");
    // Not awaited: the next key may interrupt it.
    if (line === "") await this.#say(PROMPT);
    else void this.#execute(line).then(() => this.#say(PROMPT));
  }

  async #execute(line: string): Promise<void> {
    const [name = "", ...args] = line.split(/\s+/);
    const busy = new AbortController();
    this.#busy = busy;
    try {
      await this.#carryOut(name, args, busy.signal);
    } catch {
      // Interrupted, or its machine has stopped.
      this.#last = INTERRUPTED;
    }
    this.#busy = undefined;
  }

  async #carryOut(name: string, argv: readonly string[], signal: AbortSignal): Promise<void> {
    const [first = ""] = argv;
    this.#last = 0;
    if (name === "exit") return this.end({ exit_code: Number(first) || 0 });
    if (name === "sleep") return await this.#clock.sleep(Number(first) * 1000, signal);
    if (name === "stty") return await this.#say(`${this.#size.rows} ${this.#size.cols}\r\n`);
    if (name === "seq") {
      for (let n = 1; n <= Number(first) && !signal.aborted; n++) await this.#say(`${n}\r\n`);
      return;
    }
    const { exit_code, stdout, stderr } = await this.#run([name, ...argv]);
    this.#last = exit_code;
    await this.#say(`${stdout}${stderr}`.replaceAll("\n", "\r\n"));
  }

  /** Resolves when the stream has drained. */
  async #say(text: string): Promise<void> {
    if (this.#over || this.stream.push(text)) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #goOn(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}
