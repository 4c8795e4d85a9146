import type { Readable } from "node:stream";
import { outliving } from "./outlive.ts";
import { type Descriptor, spawnLean } from "./spawn.ts";

export interface ProgramOptions {
  input?: string;
  /** Killed with SIGKILL after this. */
  timeout_ms?: number;
  env?: Record<string, string | undefined>;
  /** It, or what it leaves running, survives when systemd stops the platform's service. */
  outlives?: boolean;
}

/** A program failed. The message is its output. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
  readonly code: number | null;
  constructor(program: string, args: readonly string[], code: number | null, output: string) {
    super(`${program} ${args[0] ?? ""}: ${output.trim().slice(-WORDS) || `ended with ${code ?? "a signal"}`}`);
    this.code = code;
  }
}

const WORDS = 2000;
const OUTPUT = 16 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** Runs a program and returns its output. Uses no shell. */
export async function program(name: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { input, env, outlives = false, timeout_ms = TIMEOUT_MS } = options;
  const [file = name, ...rest_args] = outlives ? outliving([name, ...args]) : [name, ...args];
  const stdio: Descriptor[] = [input === undefined ? "nothing" : "we write", "we read", "we read"];
  const { pid, pipes, ended } = spawnLean(file, rest_args, { stdio, ...(env ? { env } : {}) });
  const late = setTimeout(() => process.kill(pid, "SIGKILL"), timeout_ms);
  try {
    // If a program does not read all its input, its exit code explains why.
    pipes[0]?.on("error", () => {}).end(input ?? "");
    const [out, err] = await Promise.all([readAll(pipes[1]), last(pipes[2])]);
    const code = await ended();
    if (code !== 0) throw new ProgramError(name, args, code, err || out);
    return out;
  } finally {
    clearTimeout(late);
  }
}

async function readAll(pipe: Readable | undefined): Promise<string> {
  let text = "";
  for await (const chunk of pipe?.setEncoding("utf8") ?? []) if (text.length < OUTPUT) text += String(chunk);
  return text;
}

/** The end of its output. */
async function last(pipe: Readable | undefined): Promise<string> {
  let text = "";
  for await (const chunk of pipe?.setEncoding("utf8") ?? []) text = (text + String(chunk)).slice(-WORDS * 2);
  return text;
}
