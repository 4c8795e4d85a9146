/** The terminal at which the command was typed, given to a program in a machine until it ends. */
import { spawnSync } from "node:child_process";
import { openTerminal, type RemoteTerminal, type TerminalEnd } from "#client/terminal.ts";
import type { Context, Result } from "../verb.ts";
import type { Found } from "./find.ts";

/** As ssh says it: the line was lost, which is no code of the program. */
const LOST = 255;
/** Typed at the beginning of a line it leaves, whatever the program does, and also when nothing answers any more. */
const LEAVE = "~.";

export const isTerminal = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Every key goes to the program, Ctrl-C as well; what it draws is drawn here. */
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
  // What Node calls raw still adds a carriage return to each line feed; to a program that draws they are two things.
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

/** Passes keys on, all but the ones that leave. */
function keysFor(terminal: RemoteTerminal): (keys: Buffer) => void {
  let line = "";
  return (keys) => {
    for (const key of keys.toString("latin1")) line = key === "\r" || key === "\n" ? "" : `${line}${key}`.slice(0, 3);
    if (line === LEAVE) terminal.close();
    else terminal.send(new Uint8Array(keys));
  };
}
