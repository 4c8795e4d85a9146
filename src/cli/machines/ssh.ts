import { createInterface } from "node:readline/promises";
import type { Context, Verb } from "../verb.ts";
import { APP, type Found, findMachine, MACHINE } from "./find.ts";
import { attach, isTerminal } from "./terminal.ts";

/** Runs a line where the last one ended, and tells where it ended itself, behind a sign that no program prints. */
const SIGN = "\u001e";
const SCRIPT = `cd "$1" || exit; eval "$2"; code=$?; printf '${SIGN}%s' "$PWD"; exit $code`;

interface Ran {
  command: string;
  stdout: string;
  stderr: string;
  exit_code: number;
  /** Where it ended. */
  directory: string;
}

/**
 * At a terminal, a terminal. Otherwise lines come from a file or another program: each runs to its end, and what it says
 * comes then.
 */
export const ssh: Verb = {
  words: "ssh",
  summary: "Open an interactive shell in a machine; without a terminal, run the lines of stdin",
  arguments: [MACHINE],
  options: [APP],
  completes: "machines",
  examples: ["echo 'uname -s' | hangar ssh $MACHINE"],
  async run(context, input) {
    const found = await findMachine(context, input);
    if (isTerminal()) return await attach(context, found);
    const ran: Ran[] = [];
    const directory = (): string => ran.at(-1)?.directory ?? "/";
    for await (const line of createInterface({ input: process.stdin })) {
      if (/^\s*(exit|logout)\s*$/.test(line)) break;
      if (line.trim() === "") continue;
      const one = await runLine(context, found, directory(), line);
      ran.push(one);
      if (input.options["json"] !== true) print(one);
    }
    return { data: ran, text: "", exit: ran.at(-1)?.exit_code ?? 0 };
  },
};

async function runLine({ client }: Context, { params }: Found, directory: string, command: string): Promise<Ran> {
  const body = { command: ["sh", "-c", SCRIPT, "sh", directory, command] };
  const said = await client.call("POST /v1/apps/:app_name/machines/:machine_id/exec", { params, body });
  const { stderr, exit_code } = said;
  // A line that ends its shell tells nothing: the next one begins where this one did.
  const at = said.stdout.lastIndexOf(SIGN);
  const [stdout, ended] = at < 0 ? [said.stdout, ""] : [said.stdout.slice(0, at), said.stdout.slice(at + 1)];
  return { command, stdout, stderr, exit_code, directory: ended || directory };
}

function print({ stdout, stderr }: Ran): void {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
}
