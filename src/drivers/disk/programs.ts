import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { outliving } from "../linux/outlive.ts";

/** A program of the system that failed; the text has what it said. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";
  constructor(command: string, exit: number, said: string) {
    super(`${command} failed (${exit})${said ? `: ${said.split("\n").slice(-2).join("; ")}` : ""}`);
  }
}

export interface RunHow {
  /** Goes to its standard input: keys are never arguments, which everybody can see. */
  input?: Uint8Array;
  /** What it leaves running goes on when systemd ends the platform's service. */
  outlives?: boolean;
}

/** Runs a program to its end and answers what it printed. No shell is in between. */
export async function run(command: string, args: readonly string[], how: RunHow = {}): Promise<string> {
  const [file = command, ...words] = how.outlives ? outliving([command, ...args]) : [command, ...args];
  const child = spawn(file, words, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, LC_ALL: "C" } });
  // A program that does not read to the end has its reasons, and its exit code tells them.
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

/** Whether it is there to be run. */
export async function exists(command: string): Promise<boolean> {
  return await run("sh", ["-c", 'command -v "$1"', "sh", command]).then(
    () => true,
    () => false,
  );
}
