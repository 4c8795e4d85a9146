import { ownStyles, print, printJsonLine, styled } from "../terminal-text.ts";
import { firstArgument, type Input, numberOption, textOption, type Verb } from "../verb.ts";
import { APP, findMachine, MACHINE } from "./find.ts";

interface Line {
  timestamp: number;
  stream: string;
  message: string;
  machine_id?: string;
  machine_name?: string;
}

const OPTIONS = [
  ["-f, --follow", "follow until interrupted; with --json, one JSON object per line"],
  ["--tail <n>", "how many of the newest (default: 100)"],
  ["--since <time>", "only newer entries: 15m, or a time"],
  ["--raw", "raw output, with colours and other escape sequences"],
] as const;

export const machinesLogs: Verb = {
  words: "machines logs",
  summary: "Print the last log lines of a machine; --follow streams them",
  arguments: [MACHINE],
  options: [APP, ...OPTIONS],
  completes: "machines",
  examples: ["hangar machines logs $MACHINE --tail 20"],
  async run(context, input) {
    const { client } = context;
    const { params } = await findMachine(context, input);
    const route = "GET /v1/apps/:app_name/machines/:machine_id/logs";
    const query = queryOf(input);
    if (query.follow)
      return await printLines(client.stream<typeof route, Line>(route, { params, query }), input, plain);
    const { lines } = await client.call(route, { params, query });
    return { data: lines, text: lines.map(plain).join("\n"), raw: isRaw(input) };
  },
};

export const logs: Verb = {
  words: "logs",
  summary: "Print the last log lines of an app's machines; --follow streams them",
  arguments: [["<app>", "the app"]],
  options: OPTIONS,
  completes: "apps",
  examples: ["hangar logs web --tail 20"],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input) };
    const route = "GET /v1/apps/:app_name/logs";
    const query = queryOf(input);
    if (query.follow)
      return await printLines(client.stream<typeof route, Line>(route, { params, query }), input, named);
    const { lines } = await client.call(route, { params, query });
    const text = lines.map(named).join("\n");
    return { data: lines, text: isRaw(input) ? ownStyles(text) : text, raw: isRaw(input) };
  },
};

function queryOf(input: Input) {
  const since = textOption(input, "since");
  const follow = input.options["follow"] === true;
  return {
    tail: numberOption(input, "tail") ?? 100,
    ...(since ? { since } : {}),
    ...(follow ? { follow } : {}),
  };
}

const isRaw = ({ options }: Input): boolean => options["raw"] === true;
const plain = ({ message }: Line): string => message;
const named = ({ machine_name, message }: Line): string => `${styled("dim", machine_name ?? "")}  ${message}`;

async function printLines(lines: AsyncIterable<Line>, input: Input, show: (line: Line) => string) {
  for await (const line of lines) {
    if (input.options["json"] === true) printJsonLine(line);
    else if (isRaw(input)) process.stdout.write(`${ownStyles(show(line))}\n`);
    else print(show(line));
  }
  return { data: null, text: "" };
}
