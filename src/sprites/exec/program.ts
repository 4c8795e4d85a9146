/** A command in a sprite, with a terminal or with separate streams, behind one interface. */
import type { Readable, Writable } from "node:stream";
import type { Ref, RuntimeDriver, TerminalEnd, TerminalSize } from "#machines/runtime/driver.ts";
import type { ExecInput } from "./input.ts";

/** Stream numbers of the Sprites API, the first byte of each message of a command without a terminal. */
export const STREAM = { stdin: 0, stdout: 1, stderr: 2, exit: 3, stdin_end: 4 } as const;

export interface Program {
  readonly outputs: readonly { number: number; stream: Readable }[];
  readonly input: Writable;
  endInput(): void;
  /** Does nothing without a terminal. */
  resize(size: TerminalSize): void;
  signal(name: string): void;
  readonly ended: Promise<TerminalEnd>;
  /** Ends it if it runs, and closes the streams. */
  close(): void;
}

const TERM = "xterm-256color";

export async function openProgram(
  driver: RuntimeDriver,
  ref: Ref,
  input: ExecInput,
  signal: AbortSignal,
): Promise<Program> {
  const { command, env, folder, tty, rows, cols } = input;
  const wanted = { command, env, ...(folder === undefined ? {} : { folder }) };
  if (!tty) return plain(await driver.process(ref, wanted, signal), input.stdin);
  const terminal = await driver.terminal(ref, { term: env["TERM"] ?? TERM, rows, cols, ...wanted }, signal);
  return {
    outputs: [{ number: STREAM.stdout, stream: terminal.stream }],
    input: terminal.stream,
    // A terminal has no end of input; programs read Ctrl-D.
    endInput: () => {},
    resize: (size) => terminal.resize(size),
    signal: (name) => terminal.signal(name),
    ended: terminal.ended,
    close: () => terminal.hangUp(),
  };
}

function plain(process: Awaited<ReturnType<RuntimeDriver["process"]>>, has_input: boolean): Program {
  if (!has_input) process.stdin.end();
  return {
    outputs: [
      { number: STREAM.stdout, stream: process.stdout },
      { number: STREAM.stderr, stream: process.stderr },
    ],
    input: process.stdin,
    endInput: () => void process.stdin.end(),
    resize: () => {},
    signal: (name) => process.signal(name),
    ended: process.ended,
    close: () => process.kill(),
  };
}
