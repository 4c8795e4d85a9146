import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { outliving } from "../linux/outlive.ts";

/** A system program failed; the message contains its output. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
  constructor(command: string, exit: number, said: string) {
    super(`${command} failed (${exit})${said ? `: ${said.split("\n").slice(-2).join("; ")}` : ""}`);
  }
}

export interface RunHow {
  /** Written to standard input: keys are never arguments, which are visible to all. */
  input?: Uint8Array;
  /** What it starts survives when systemd stops the platform's service. */
  outlives?: boolean;
}

/** Runs a program and returns its output. Uses no shell. */
export async function run(command: string, args: readonly string[], how: RunHow = {}): Promise<string> {
  const [file = command, ...rest_args] = how.outlives ? outliving([command, ...args]) : [command, ...args];
  const child = spawn(file, rest_args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, LC_ALL: "C" } });
  // If a program does not read all its input, its exit code explains why.
  child.stdin.on("error", () => {});
  child.stdin.end(how.input);
  const ended = once(child, "close");
  const [out, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    ended as Promise<[number | null]>,
  ]);
  const exit = code ?? -1;
  if (exit !== 0) throw new ProgramError(command, exit, said.trim() || out.trim());
  return out;
}

/** Whether the program is installed. */
export async function exists(command: string): Promise<boolean> {
  return await run("sh", ["-c", 'command -v "$1"', "sh", command]).then(
    () => true,
    () => false,
  );
}
