import { ownStyles, print, printJsonLine, styled } from "../terminal-text.ts";
import { type Context, firstArgument, type Input, listOption, numberOption, textOption, type Verb } from "../verb.ts";
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
  ["--since <time>", "only newer entries: 15m, 2d, or a time"],
  ["--until <time>", "only older entries"],
  ["--search <text>", "only lines with all of these words, in all kept logs"],
  ["--level <level>", "only lines of this level: error, warn, info or debug"],
  ["--field <test...>", "only JSON lines whose field is so: user=7, status>=500, level!=debug; repeated: all of them"],
  ["--raw", "raw output, with colours and other escape sequences"],
] as const;

export const machinesLogs: Verb = {
  words: "machines logs",
  summary: "Print or search the log lines of a machine; --follow streams them",
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
    const lines = await newest(context, query, (query) => client.call(route, { params, query }));
    return { data: lines, text: lines.map(plain).join("\n"), raw: isRaw(input) };
  },
};

export const logs: Verb = {
  words: "logs",
  summary: "Print or search the log lines of an app's machines; --follow streams them",
  arguments: [["<app>", "the app"]],
  options: [...OPTIONS, ["--machine <machine>", "only lines of this machine: its id or name"]],
  completes: "apps",
  examples: ["hangar logs web --tail 20", "hangar logs web --search started --since 2d"],
  async run(context, input) {
    const { client } = context;
    const params = { app_name: firstArgument(input) };
    const route = "GET /v1/apps/:app_name/logs";
    const machine = textOption(input, "machine");
    const query = { ...queryOf(input), ...(machine ? { machine } : {}) };
    if (query.follow)
      return await printLines(client.stream<typeof route, Line>(route, { params, query }), input, named);
    const lines = await newest(context, query, (query) => client.call(route, { params, query }));
    const text = lines.map(named).join("\n");
    return { data: lines, text: isRaw(input) ? ownStyles(text) : text, raw: isRaw(input) };
  },
};

function queryOf(input: Input) {
  const level = textOption(input, "level");
  const given = Object.fromEntries(
    (["since", "until", "search"] as const).flatMap((name) => {
      const value = textOption(input, name);
      return value ? [[name, value]] : [];
    }),
  ) as { since?: string; until?: string; search?: string };
  const field = listOption(input, "field");
  const follow = input.options["follow"] === true;
  return {
    tail: numberOption(input, "tail") ?? 100,
    ...given,
    // The platform says which there are.
    ...(level ? { level: level as "error" } : {}),
    ...(field.length > 0 ? { field: [...field] } : {}),
    ...(follow ? { follow } : {}),
  };
}

interface Answer {
  lines: Line[];
  cursor?: string | undefined;
  damaged?: string[] | undefined;
  away?: { host_id: string; reason: string }[] | undefined;
  left_out?: number | undefined;
}

/** The newest lines, oldest first. A search that a limit ended goes on until there are enough, or no more. */
async function newest<Query extends ReturnType<typeof queryOf>>(
  { say }: Pick<Context, "say">,
  query: Query,
  call: (query: Query & { limit?: number; cursor?: string }) => Promise<Answer>,
): Promise<Line[]> {
  const { tail, search, level, until, field } = query;
  const is_search = [search, level, until, field].some((given) => given !== undefined) || "machine" in query;
  const first = await call(query);
  if (!is_search) return first.lines;
  const notes = new Set<string>();
  let page = first;
  const lines: Line[] = [];
  for (;;) {
    lines.push(...page.lines);
    for (const { host_id, reason } of page.away ?? []) notes.add(`lines of host ${host_id} are missing: ${reason}`);
    if (page.left_out) notes.add(`${page.left_out} machines were not searched; --machine names one`);
    for (const id of page.damaged ?? []) notes.add(`a part of the log of machine ${id} is damaged`);
    if (page.cursor === undefined || lines.length >= tail) break;
    page = await call({ ...query, limit: tail - lines.length, cursor: page.cursor });
  }
  for (const note of notes) say(note);
  return lines.reverse();
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
