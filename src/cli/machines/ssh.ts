import { createInterface } from "node:readline/promises";
import { type Context, type Input, neededApp, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import { APP, type Found, findMachine } from "./find.ts";
import { attach, isTerminal } from "./terminal.ts";

/** Runs a line in the working directory of the last one, and prints its own behind this separator. */
const SIGN = "\u001e";
const SCRIPT = `cd "$1" || exit; eval "$2"; code=$?; printf '${SIGN}%s' "$PWD"; exit $code`;

interface Ran {
  command: string;
  stdout: string;
  stderr: string;
  exit_code: number;
  /** The working directory after the line. */
  directory: string;
}

/**
 * Opens a terminal when stdin is one. Otherwise the lines of stdin run one by one, and the output of each is printed
 * when it has ended.
 */
export const ssh: Verb = {
  words: "ssh",
  summary: "Open an interactive shell in a machine; without a terminal, run the lines of stdin",
  arguments: [["[machine]", "id or name (default: a running machine of the app)"]],
  options: [APP, ["-C, --command <line>", "run this line of shell instead"]],
  completes: "machines",
  examples: ["echo 'uname -s' | hangar ssh $MACHINE", "hangar ssh $MACHINE --command 'uname -s'"],
  async run(context, input) {
    const found = await findMachine(
      context,
      input.args[0] ? input : { ...input, args: [await anyRunning(context, input)] },
    );
    const command = textOption(input, "command");
    if (command !== undefined) return await runOnce(context, found, command);
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

/** A running machine of the app, when the command names only the app. */
async function anyRunning({ client }: Context, input: Input): Promise<string> {
  const app_name = neededApp(input);
  const query = { summary: true, state: ["started"] };
  for await (const { id } of client.list("GET /v1/apps/:app_name/machines", { params: { app_name }, query })) return id;
  throw new UsageError(`no machine of ${app_name} is running; \`hangar machines start\` starts one`);
}

async function runOnce({ client }: Context, { params }: Found, command: string): Promise<Result> {
  const body = { command: ["sh", "-c", command] };
  const data = await client.call("POST /v1/apps/:app_name/machines/:machine_id/exec", { params, body });
  process.stderr.write(data.stderr);
  return { data, text: data.stdout.replace(/\n$/, ""), raw: true, exit: data.exit_code };
}

async function runLine({ client }: Context, { params }: Found, directory: string, command: string): Promise<Ran> {
  const body = { command: ["sh", "-c", SCRIPT, "sh", directory, command] };
  const said = await client.call("POST /v1/apps/:app_name/machines/:machine_id/exec", { params, body });
  const { stderr, exit_code } = said;
  // A line that exits its shell prints no directory: the next one runs in the same.
  const at = said.stdout.lastIndexOf(SIGN);
  const [stdout, ended] = at < 0 ? [said.stdout, ""] : [said.stdout.slice(0, at), said.stdout.slice(at + 1)];
  return { command, stdout, stderr, exit_code, directory: ended || directory };
}

function print({ stdout, stderr }: Ran): void {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
}
