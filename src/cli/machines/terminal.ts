/** Attaches the local terminal to a program in a machine until it exits. */
import { spawnSync } from "node:child_process";
import { openTerminal, type RemoteTerminal, type TerminalEnd } from "#client/terminal.ts";
import type { Context, Result } from "../verb.ts";
import type { Found } from "./find.ts";

/** Exit code of ssh for a lost connection, which is not a code of the program. */
const LOST = 255;
/** Escape sequence of ssh: at the beginning of a line it disconnects, even when the remote side does not respond. */
const LEAVE = "~.";

export const isTerminal = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Sends every key to the program, Ctrl-C too, and prints its output. */
export async function attach(context: Context, { params }: Found, command?: readonly string[]): Promise<Result> {
  const { stdin, stdout } = process;
  const size = () => ({ rows: stdout.rows || 24, cols: stdout.columns || 80 });
  const term = process.env["TERM"] ?? "";
  const wanted = {
    ...params,
    ...size(),
    ...(/^[\w.+-]{1,64}$/.test(term) ? { term } : {}),
    ...(command ? { command } : {}),
  };
  const terminal = await openTerminal(context.client, wanted, (screen) => void stdout.write(screen));
  const follow = (): void => terminal.resize(size());
  const typed = keysFor(terminal);
  stdin.setRawMode(true);
  // Node's raw mode leaves `opost` on, which adds a carriage return to each line feed and breaks full-screen programs.
  spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  stdin.on("data", typed).resume();
  stdout.on("resize", follow);
  let end: TerminalEnd;
  try {
    end = await terminal.ended;
  } finally {
    stdin.setRawMode(false);
    stdin.off("data", typed).pause();
    stdout.off("resize", follow);
  }
  if (end.exit_code === undefined) context.say(`\r\n${end.reason}`);
  return { data: end, text: "", exit: end.exit_code ?? LOST };
}

/** Sends keys to the terminal, except the escape sequence. */
function keysFor(terminal: RemoteTerminal): (keys: Buffer) => void {
  let line = "";
  return (keys) => {
    for (const key of keys.toString("latin1")) line = key === "\r" || key === "\n" ? "" : `${line}${key}`.slice(0, 3);
    if (line === LEAVE) terminal.close();
    else terminal.send(new Uint8Array(keys));
  };
}
