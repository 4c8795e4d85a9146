import { createInterface } from "node:readline/promises";
import type { Context, Verb } from "../verb.ts";
import { APP, type Found, findMachine, readMachine } from "./find.ts";

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
 * Not a terminal: each line runs to its end, and what it says comes then. What asks questions gets no answer; that is
 * what the API has, and it works through everything that passes HTTP.
 */
export const ssh: Verb = {
  words: "ssh",
  summary: "Type commands into a machine: each line runs in a shell inside, where the last one ended",
  arguments: [["<machine>", "id or name"]],
  options: [APP],
  completes: "machines",
  examples: ["echo 'uname -s' | hangar ssh $MACHINE"],
  async run(context, input) {
    const found = await findMachine(context, input);
    const { name } = await readMachine(context, found);
    const terminal = process.stdin.isTTY;
    const lines = createInterface({ input: process.stdin, ...(terminal ? { output: process.stderr } : {}) });
    const ran: Ran[] = [];
    const prompt = (): void => {
      if (!terminal) return;
      lines.setPrompt(`${name}:${ran.at(-1)?.directory ?? "/"}$ `);
      lines.prompt();
    };
    prompt();
    for await (const line of lines) {
      if (/^\s*(exit|logout)\s*$/.test(line)) break;
      if (line.trim() !== "") {
        const one = await runLine(context, found, ran.at(-1)?.directory ?? "/", line);
        ran.push(one);
        if (input.options["json"] !== true) print(one);
      }
      prompt();
    }
    lines.close();
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
