import { spawn } from "node:child_process";

export interface ProgramOptions {
  input?: string;
  /** Ended with SIGKILL after this. */
  timeout_ms?: number;
  env?: Record<string, string | undefined>;
}

/** A program that did not end well. The text is its own words. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
  readonly code: number | null;
  constructor(program: string, args: readonly string[], code: number | null, words: string) {
    super(`${program} ${args[0] ?? ""}: ${words.trim().slice(-WORDS) || `ended with ${code ?? "a signal"}`}`);
    this.code = code;
  }
}

const WORDS = 2000;
const OUTPUT = 16 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** Runs a program to its end and answers what it wrote. Never through a shell. */
export async function program(name: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const child = spawn(name, args, {
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    ...(options.env ? { env: options.env } : {}),
  });
  const late = setTimeout(() => child.kill("SIGKILL"), options.timeout_ms ?? TIMEOUT_MS);
  try {
    return await new Promise<string>((resolve, reject) => {
      let out = "";
      let err = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        if (out.length < OUTPUT) out += text;
      });
      child.stderr?.setEncoding("utf8").on("data", (text: string) => {
        err = (err + text).slice(-WORDS * 2);
      });
      child.once("error", reject);
      child.once("close", (code) =>
        code === 0 ? resolve(out) : reject(new ProgramError(name, args, code, err || out)),
      );
      // A program that ends before it has read everything says so by its code.
      child.stdin?.on("error", () => {}).end(options.input);
    });
  } finally {
    clearTimeout(late);
  }
}
