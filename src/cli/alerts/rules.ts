import { readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { messageOf } from "#core/assert.ts";
import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ORG } from "../metrics/ask.ts";
import { firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";
import { orgOf } from "./list.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app's own rules, which see only its series"];
const DIALECT: readonly [string, string] = ["--dialect <name>", "promql (default) or metricsql"];
const NAME: readonly [string, string] = ["[rule-file]", "its name (default: default, the built-in rules)"];

function dialectOf(input: Input): "promql" | "metricsql" | undefined {
  const name = textOption(input, "dialect");
  if (name === undefined || name === "promql" || name === "metricsql") return name;
  throw new UsageError(`--dialect is promql or metricsql, not ${name}`);
}

/** Only `--app` on the command line counts: the default app of the folder is ignored here. */
const namedApp = (input: Input): string | undefined => (input.app_from ? undefined : textOption(input, "app"));

export async function contentOf(path: string, stdin: () => Promise<string>): Promise<string> {
  if (path === "-") return await stdin();
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    throw new UsageError(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}

export const alertsRules: Verb = {
  words: "alerts rules",
  summary: "List rule files",
  options: [ORG],
  lists: true,
  examples: ["hangar alerts rules"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/alerts/rules", { params: orgOf(input) });
    return await listTable(context, input, pages, {
      heads: ["name", "groups", "rules", "dialect", "changed"],
      row: ({ name, groups, rules, dialect, updated_at }) => [
        name,
        String(groups),
        String(rules),
        dialect,
        updated_at ?? "built in",
      ],
      none: "no rules",
    });
  },
};

export const alertsShow: Verb = {
  words: "alerts show",
  summary: "Show a rule file",
  arguments: [NAME],
  options: [ORG, APP],
  examples: ["hangar alerts show", "hangar alerts show default > my-rules.yml"],
  async run({ client }, input) {
    const app_name = namedApp(input);
    const file = await (app_name
      ? client.call("GET /v1/apps/:app_name/alerts/rules", { params: { app_name } })
      : client.call("GET /v1/orgs/:org_slug/alerts/rules/:rule_file", {
          params: { ...orgOf(input), rule_file: firstArgument(input) || "default" },
        }));
    return { data: file, text: file.content.trimEnd() };
  },
};

export const alertsApply: Verb = {
  words: "alerts apply",
  summary: "Create or replace a rule file in Prometheus' format",
  details: () =>
    "The name of the rule file is that of the file without its ending. One named `default` replaces the built-in rules.",
  arguments: [["<file>", "YAML with groups of rules; - reads stdin"]],
  options: [ORG, APP, ["--name <name>", "of the rule file (default: that of the file)"], DIALECT],
  examples: ["hangar alerts apply rules.yml"],
  async run({ client, stdin }, input) {
    const path = firstArgument(input);
    const dialect = dialectOf(input);
    const body = { content: await contentOf(path, stdin), ...(dialect ? { dialect } : {}) };
    const app_name = namedApp(input);
    const name = textOption(input, "name") ?? (path === "-" ? "" : basename(path, extname(path)).toLowerCase());
    if (name === "" && !app_name) throw new UsageError("give the rule file a name: --name <name>");
    const file = await (app_name
      ? client.call("PUT /v1/apps/:app_name/alerts/rules", { params: { app_name }, body })
      : client.call("PUT /v1/orgs/:org_slug/alerts/rules/:rule_file", {
          params: { ...orgOf(input), rule_file: name },
          body,
        }));
    const text = `applied ${file.name}: ${count(file.rules, "rule")} in ${count(file.groups, "group")}\nNext: hangar alerts list`;
    return { data: file, text };
  },
};

export const alertsTest: Verb = {
  words: "alerts test",
  summary: "Run unit tests of rules, in promtool's format; needs no platform",
  arguments: [["<files...>", "files with `rule_files` and `tests`"]],
  options: [DIALECT],
  examples: ["hangar alerts test rules.test.yml"],
  async run({ runProgram }, input) {
    const files = input.rest.length > 0 ? input.rest : input.args.flatMap((file) => file ?? []);
    const args = ["--json", "--dialect", dialectOf(input) ?? "promql", ...files];
    const { exit, text } = await runProgram("alerts/test-rules.ts", args, "quiet");
    const results = JSON.parse(text) as TestedFile[];
    return { data: results, text: results.map(resultText).join("\n"), exit };
  },
};

interface TestedFile {
  file: string;
  passed: number;
  failures: { test: string; text: string }[];
  problems: string[];
}

function resultText({ file, passed, failures, problems }: TestedFile): string {
  const lines = [...problems, ...failures.map(({ test, text }) => `${test}: ${text}`)];
  if (lines.length === 0) return `${file}: ${count(passed, "test")} passed`;
  return [`${file}: FAILED`, ...lines.map((line) => `  ${line}`)].join("\n");
}

export const alertsDelete: Verb = {
  words: "alerts delete",
  summary: "Delete a rule file; deleting `default` brings the built-in rules back",
  arguments: [["[rule-file]", "its name"]],
  options: [ORG, APP],
  examples: ["hangar alerts delete rules"],
  async run({ client }, input) {
    const app_name = namedApp(input);
    const rule_file = firstArgument(input);
    if (rule_file === "" && !app_name) throw new UsageError("name the rule file, or the app with --app");
    await (app_name
      ? client.call("DELETE /v1/apps/:app_name/alerts/rules", { params: { app_name } })
      : client.call("DELETE /v1/orgs/:org_slug/alerts/rules/:rule_file", { params: { ...orgOf(input), rule_file } }));
    const name = app_name ? `the rules of ${app_name}` : rule_file;
    return { data: { name, deleted: true }, text: `deleted ${name}` };
  },
};
