/** Programs with separate streams that are none: enough of a shell to see that streams, signals and exit codes arrive. */
import { once } from "node:events";
import { constants } from "node:os";
import { PassThrough } from "node:stream";
import type { Clock } from "#core/clock.ts";
import type { MachineProcess, ProgramOptions, TerminalEnd } from "#machines/runtime/driver.ts";
import { FILE_HELPER } from "#machines/runtime/file-helper.ts";
import { SimFiles } from "./files.ts";

const KILLED: TerminalEnd = { exit_code: 137, exit_signal: 9 };
const NOT_FOUND = 127;
const SEQ_PAGE = 1000;

/** Programs by machine, so that they end with it. */
export class SimPrograms {
  readonly #open = new Map<string, Set<SimProgram>>();
  readonly #files: SimFiles;

  constructor(files_dir?: string) {
    this.#files = new SimFiles(files_dir);
  }

  open(id: string, wanted: ProgramOptions, clock: Clock): MachineProcess {
    const program = new SimProgram(id, wanted, clock, this.#files);
    const all = this.#open.get(id) ?? new Set();
    this.#open.set(id, all.add(program));
    void program.ended.then(() => {
      all.delete(program);
      if (all.size === 0 && this.#open.get(id) === all) this.#open.delete(id);
    });
    return program;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  end(id: string): void {
    for (const program of this.#open.get(id) ?? []) program.end(KILLED);
  }

  /** The machine is destroyed, with its files. */
  remove(id: string): void {
    this.end(id);
    this.#files.remove(id);
  }

  close(): void {
    for (const id of this.#open.keys()) this.end(id);
    this.#files.close();
  }
}

type Words = readonly string[];

class SimProgram implements MachineProcess {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly ended: Promise<TerminalEnd>;
  readonly #ended = Promise.withResolvers<TerminalEnd>();
  readonly #over = new AbortController();
  readonly #id: string;
  readonly #wanted: ProgramOptions;
  readonly #clock: Clock;
  readonly #files: SimFiles;

  constructor(id: string, wanted: ProgramOptions, clock: Clock, files: SimFiles) {
    this.#id = id;
    this.#files = files;
    this.ended = this.#ended.promise;
    this.#wanted = wanted;
    this.#clock = clock;
    void this.#run(wanted.command).then(
      (exit_code) => this.end({ exit_code }),
      () => this.end(KILLED),
    );
  }

  signal(name: string): void {
    const number = constants.signals[name as NodeJS.Signals];
    this.end({ exit_code: 128 + number, exit_signal: number });
  }

  kill(): void {
    this.end(KILLED);
    for (const stream of [this.stdin, this.stdout, this.stderr]) stream.destroy();
  }

  end(how: TerminalEnd): void {
    this.#over.abort();
    this.#ended.resolve(how);
    this.stdout.end();
    this.stderr.end();
  }

  async #run([name = "", ...words]: Words): Promise<number> {
    const program = PROGRAMS[name];
    if (program) return await program.call(this, words);
    await this.#say(`sim runs nothing: ${[name, ...words].join(" ")}\n`, this.stderr);
    return NOT_FOUND;
  }

  /** Waits while nobody reads. */
  async #say(text: string | Buffer, to = this.stdout): Promise<void> {
    if (!to.writable || to.write(text)) return;
    await once(to, "drain", { signal: this.#over.signal });
  }

  async say(text: string): Promise<0> {
    await this.#say(text);
    return 0;
  }

  async cat(): Promise<0> {
    for await (const piece of this.stdin) await this.#say(piece as Buffer);
    return 0;
  }

  async sleep(seconds: number): Promise<0> {
    await this.#clock.sleep(seconds * 1000, this.#over.signal);
    return 0;
  }

  /** The one program that is real. */
  async files([, ...words]: Words): Promise<number> {
    const child = this.#files.start(this.#id, words);
    const end = (): void => void child.kill("SIGKILL");
    this.#over.signal.addEventListener("abort", end, { once: true });
    child.stdin.on("error", () => {});
    this.stdin.pipe(child.stdin);
    child.stdout.pipe(this.stdout, { end: false });
    child.stderr.pipe(this.stderr, { end: false });
    const [code] = (await once(child, "close")) as [number | null];
    return code ?? KILLED.exit_code;
  }

  environment(): string {
    return Object.entries(this.#wanted.env ?? {})
      .map(([key, value]) => `${key}=${value}\n`)
      .join("");
  }

  get folder(): string {
    return this.#wanted.folder ?? "/";
  }

  /** A script of simple commands, of which `>&2` and `exit` are the only syntax. */
  async script(text: string): Promise<number> {
    let last = 0;
    for (const line of text.split(/[;\n]/)) {
      const words = line.trim().split(/\s+/);
      if (words[0] === "exit") return Number(words[1] ?? last);
      if (words[0] === "echo" && words.at(-1) === ">&2")
        await this.#say(`${words.slice(1, -1).join(" ")}\n`, this.stderr);
      else if (words[0]) last = await this.#run(words);
    }
    return last;
  }
}

const PROGRAMS: Readonly<Record<string, (this: SimProgram, words: Words) => Promise<number>>> = {
  async echo(words) {
    return await this.say(`${words.join(" ")}\n`);
  },
  async cat() {
    return await this.cat();
  },
  true: async () => 0,
  false: async () => 1,
  async sleep([seconds]) {
    return await this.sleep(Number(seconds));
  },
  async env() {
    return await this.say(this.environment());
  },
  async pwd() {
    return await this.say(`${this.folder}\n`);
  },
  async seq([last]) {
    for (let n = 1; n <= Number(last); n += SEQ_PAGE) {
      const page = Array.from({ length: Math.min(SEQ_PAGE, Number(last) - n + 1) }, (_, at) => `${n + at}\n`);
      await this.say(page.join(""));
    }
    return 0;
  },
  async [FILE_HELPER](words) {
    return await this.files(words);
  },
  async sh([, script]) {
    return await this.script(script ?? "");
  },
};
