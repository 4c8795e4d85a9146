/** Commands about one-off tasks, scheduled runs and release commands: results and logs. */
import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import { firstArgument, type Input, neededApp, numberOption, textOption, type Verb } from "../verb.ts";
import { exitOf, followRun, howItEnded, type Run, writeLine } from "./follow.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const RUN: readonly [string, string] = ["<run>", "the id of the run"];
const COMMAND_CHARS = 40;

const paramsOf = (input: Input) => ({ app_name: neededApp(input), run_id: firstArgument(input) });
const took = (ms: number | null): string => (ms === null ? "" : `${(ms / 1000).toFixed(1)} s`);
const cut = (text: string): string => (text.length > COMMAND_CHARS ? `${text.slice(0, COMMAND_CHARS - 1)}…` : text);

const list: Verb = {
  words: "runs list",
  summary: "List one-off tasks, scheduled runs and release commands, newest first",
  is_default: true,
  options: [
    APP,
    ["--machine <id>", "only those of this machine"],
    ["--state <state>", "only running, complete, failed, stopped or skipped ones"],
  ],
  lists: true,
  examples: ["hangar runs list --app web"],
  async run(context, input) {
    const params = { app_name: neededApp(input) };
    const query = { machine_id: textOption(input, "machine"), state: textOption(input, "state") as Run["state"] };
    const now = systemClock.now();
    const pages = pagesOf(context.client, input, "GET /v1/apps/:app_name/runs", { params, query });
    return await listTable(context, input, pages, {
      heads: ["run", "what", "command", "state", "ended with", "took", "by", "when"],
      row: (run) => [
        run.id,
        run.kind,
        cut(run.command),
        run.state,
        howItEnded(run),
        took(run.duration_ms),
        run.started_by,
        ago(run.started_at, now),
      ],
      none: "no runs yet: `hangar run --once`, a process with a schedule or a release command makes one",
    });
  },
};

const show: Verb = {
  words: "runs show",
  summary: "Show a run: its command, exit code, duration and who started it",
  arguments: [RUN],
  options: [APP],
  examples: [],
  async run({ client }, input) {
    const run = await client.call("GET /v1/apps/:app_name/runs/:run_id", { params: paramsOf(input) });
    const text = facts([
      ["id", run.id],
      ["what", run.kind],
      ["state", run.state],
      ["ended with", howItEnded(run) || "it runs"],
      ["command", run.command || "the image's own"],
      ["image", run.image],
      ["machine", `${run.machine_name} (${run.machine_id})`],
      ["started", `${run.started_at} by ${run.started_by}`],
      ["ended", run.ended_at ?? "not yet"],
      ...(run.duration_ms === null ? [] : [["took", took(run.duration_ms)] as const]),
      ...(run.error === null ? [] : [["error", run.error] as const]),
    ]);
    return { data: run, text };
  },
};

const logs: Verb = {
  words: "runs logs",
  summary: "Print the output of a run; --follow streams it, and exits with the run's exit code",
  arguments: [RUN],
  options: [
    APP,
    ["-f, --follow", "follow until the run ends"],
    ["--tail <n>", "how many of the newest lines (default: all that are kept)"],
    ["--raw", "raw output, with colours and other escape sequences"],
  ],
  examples: [],
  async run({ client }, input) {
    const params = paramsOf(input);
    const raw = input.options["raw"] === true;
    if (input.options["follow"] === true) {
      const how = { json: input.options["json"] === true, raw };
      const run = await followRun(client, params, (line) => writeLine(line, how));
      return { data: run, text: "", exit: exitOf(run) };
    }
    const tail = numberOption(input, "tail");
    const query = tail === undefined ? {} : { tail };
    const { lines } = await client.call("GET /v1/apps/:app_name/runs/:run_id/logs", { params, query });
    return { data: lines, text: lines.map(({ message }) => message).join("\n"), raw };
  },
};

export const VERBS: readonly Verb[] = [list, show, logs];
