import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { messageOf } from "#core/assert.ts";
import { count } from "#core/words.ts";
import { collect } from "../lists.ts";
import { type Context, firstArgument, textOption, UsageError, type Verb } from "../verb.ts";
import { type Document, readDocument } from "./document.ts";
import { type Plan, planApp, stepLines } from "./plan.ts";
import { readApp } from "./read.ts";
import { runStep } from "./run.ts";

const exportApps: Verb = {
  words: "export",
  summary: "Export apps as a desired-state file for `hangar apply`",
  arguments: [["[apps...]", "only these apps (default: all of the organization)"]],
  options: [
    ["--org <slug>", "the organization (default: personal)"],
    ["-o, --output <file>", "into this file"],
  ],
  completes: "apps",
  examples: ["hangar export", "hangar export machinery -o machinery.json"],
  async run(context, input) {
    const org_slug = textOption(input, "org") ?? "personal";
    const names = input.rest.length > 0 ? input.rest : await appNames(context, org_slug);
    const apps = await Promise.all(names.map(async (name) => (await readApp(context, name))?.document ?? noApp(name)));
    const data: Document = { hangar: 1, apps };
    const text = JSON.stringify(data, undefined, 2);
    const file = textOption(input, "output");
    if (!file) return { data, text };
    writeFileSync(file, `${text}\n`);
    return { data, text: `wrote ${count(apps.length, "app")} to ${file}; values of secrets and data are not in it` };
  },
};

async function appNames({ client }: Context, org_slug: string): Promise<string[]> {
  return (await collect(client.pages("GET /v1/apps", { query: { org_slug } }))).map(({ name }) => name);
}

function noApp(name: string): never {
  throw new UsageError(`there is no app ${name}`);
}

const apply: Verb = {
  words: "apply",
  summary: "Apply a desired-state file; shows the changes first",
  arguments: [["<file>", "output of `hangar export`; - is stdin"]],
  options: [
    ["--dry-run", "show the differences without applying them; exit code 1 if there are any"],
    ["--prune", "destroy machines of these apps that are not in the document; volumes always stay"],
    ["-y, --yes", "do not ask for confirmation"],
  ],
  examples: ["hangar export machinery -o state.json && hangar apply state.json --dry-run", "hangar apply state.json"],
  async run(context, input) {
    const file = firstArgument(input);
    const document = readDocument(await read(context, file), file);
    const plans = await Promise.all(
      document.apps.map(async (app) => planApp(app, await readApp(context, app.name), input.options["prune"] === true)),
    );
    const plan: Plan = {
      steps: plans.flatMap(({ steps }) => steps),
      problems: plans.flatMap(({ problems }) => problems),
    };
    for (const problem of plan.problems) context.say(`problem: ${problem}`);
    const lines = plan.steps.flatMap(stepLines);
    const data = { steps: plan.steps.map(({ app, ...step }) => ({ app: app.name, ...step })), problems: plan.problems };
    if (lines.length === 0) return { data, text: "nothing differs", exit: plan.problems.length > 0 ? 1 : 0 };
    if (input.options["dryRun"] === true) return { data, text: lines.join("\n"), exit: 1 };
    if (input.options["yes"] !== true && !(await agreed(context, lines))) return { data, text: "nothing was done" };
    for (const step of plan.steps) await runStep(context, step);
    return { data, text: `done: ${count(plan.steps.length, "step")}`, exit: plan.problems.length > 0 ? 1 : 0 };
  },
};

async function read(context: Context, file: string): Promise<string> {
  if (file === "-") return await context.stdin();
  try {
    return readFileSync(file, "utf8");
  } catch (thrown) {
    throw new UsageError(`the document cannot be read: ${messageOf(thrown)}`);
  }
}

/** Asks for confirmation on a terminal; a script has agreed by calling. */
async function agreed({ say }: Context, lines: readonly string[]): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return true;
  for (const line of lines) say(line);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question("Do it? [y/N] ")).trim());
  } finally {
    terminal.close();
  }
}

export const VERBS: readonly Verb[] = [exportApps, apply];
