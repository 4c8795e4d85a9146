/** Programs that a test starts: their lines as they come, their end, and never one left behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";

export const ROOT = join(import.meta.dirname, "../..");
/** For a script of the documents: `hangar`, and `npx hangar`, is the checkout's own command. */
export const NPX = `hangar() { "${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" "$@"; }
npx() { "$@"; }`;

interface End {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export class Child {
  readonly pid: number;
  /** Everything it has printed so far, line by line. */
  readonly lines: string[] = [];
  readonly ended: Promise<End>;
  /** What it has said on stderr. */
  complaints = "";
  readonly #process: ChildProcess;
  #heard = Promise.withResolvers<void>();

  constructor(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; cwd?: string; uid?: number; gid?: number } = {},
  ) {
    const child = spawn(command, args, { cwd: ROOT, ...options, stdio: ["pipe", "pipe", "pipe"] });
    this.#process = child;
    this.pid = child.pid ?? 0;
    // A program that is gone no longer listens; its end tells that, not a broken pipe.
    child.stdin.on("error", () => {});
    this.#collect(child.stdout);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.complaints += text;
    });
    this.ended = new Promise((resolve, reject) => {
      child.on("error", (error) => {
        this.complaints += error.message;
        reject(error);
        this.#heard.resolve();
      });
      // "close", not "exit": by then every line it wrote before its end has been read.
      child.on("close", (code, signal) => {
        resolve({ code, signal });
        this.#heard.resolve();
      });
    });
  }

  /** The first line that matches; rejects when the program ends without having printed one. */
  async until(pattern: RegExp): Promise<string> {
    let seen = 0;
    let over = false;
    const end = (): void => {
      over = true;
    };
    // One that could not even be started is over, too.
    void this.ended.then(end, end);
    for (;;) {
      const heard = this.#heard.promise;
      for (; seen < this.lines.length; seen++) {
        const line = this.lines[seen] ?? "";
        if (pattern.test(line)) return line;
      }
      if (over) throw new Error(`it ended without printing ${pattern}: ${this.complaints}`);
      await heard;
    }
  }

  send(line: string): void {
    this.#process.stdin?.write(`${line}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async kill(): Promise<End> {
    this.#process.kill("SIGKILL");
    return await this.ended;
  }

  #collect(stream: NodeJS.ReadableStream): void {
    let rest = "";
    stream.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      this.lines.push(...lines);
      const { resolve } = this.#heard;
      this.#heard = Promise.withResolvers();
      resolve();
    });
  }
}

/** Starts a TypeScript program of ours; it is killed when the test ends, if it still runs then. */
export function startProgram(
  t: Pick<TestContext, "after">,
  file: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Child {
  // As under npm: a program that is started a hundred times is compiled once.
  const NODE_COMPILE_CACHE = join(ROOT, "node_modules/.cache/compile");
  const child = new Child(process.execPath, [join(ROOT, file), ...args], {
    env: { NODE_COMPILE_CACHE, ...process.env, ...env },
  });
  t.after(() => child.kill());
  return child;
}
