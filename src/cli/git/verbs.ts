/** Deploys by `git push`: the address of an app's repository, the branch that is deployed, the token as password. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf } from "#core/assert.ts";
import { bytesText } from "../images/bytes-text.ts";
import { facts } from "../output.ts";
import { firstArgument, neededApp, textOption, UsageError, type Verb } from "../verb.ts";
import { WEBHOOK_VERBS } from "./webhooks.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const run = promisify(execFile);

const remote: Verb = {
  words: "git remote",
  summary: "Print the commands to push an app with Git; --add runs them in this folder",
  details: () =>
    "Git gets the password from `hangar git credential`, which prints the token that every command uses here: no token is written into the repository's config.",
  options: [APP, ["--add", "run these commands in this folder"], ["--name <name>", "of the remote (default: hangar)"]],
  examples: ["hangar git remote --app web"],
  async run(context, input) {
    const app_name = neededApp(input);
    const name = textOption(input, "name") ?? "hangar";
    const { url, deploy_branch } = await context.client.call("GET /v1/apps/:app_name/git", { params: { app_name } });
    const helper = `credential.${new URL(url).origin}.helper`;
    const commands = [
      ["remote", "add", name, url],
      ["config", helper, "!hangar git credential"],
    ];
    if (input.options["add"] === true)
      for (const args of commands)
        await run("git", args).catch((thrown: unknown) => {
          const { stderr } = thrown as { stderr?: string };
          throw new UsageError(`git ${args.join(" ")}: ${stderr?.trim() || messageOf(thrown)}`);
        });
    const printed = commands.map(
      (words) => `git ${words.map((word) => (/[ !]/.test(word) ? `'${word}'` : word)).join(" ")}`,
    );
    const next = `git push ${name} ${deploy_branch}`;
    const text = input.options["add"] === true ? `added ${name}: ${url}\nNext: ${next}` : [...printed, next].join("\n");
    return { data: { url, name, deploy_branch, commands: printed }, text };
  },
};

const branch: Verb = {
  words: "git branch",
  summary: "Show or set the branch whose pushes are deployed",
  arguments: [["[branch]", "the branch (default: show it)"]],
  options: [APP],
  examples: ["hangar git branch --app web"],
  async run({ client }, input) {
    const params = { app_name: neededApp(input) };
    const named = firstArgument(input);
    const settings = await (named === ""
      ? client.call("GET /v1/apps/:app_name/git", { params })
      : client.call("PUT /v1/apps/:app_name/git", { params, body: { deploy_branch: named } }));
    const { url, deploy_branch, repository_bytes } = settings;
    const size = repository_bytes === null ? "nothing was pushed yet" : bytesText(repository_bytes);
    const text = facts([
      ["branch", deploy_branch],
      ["repository", url],
      ["size", size],
    ]);
    return { data: settings, text };
  },
};

const credential: Verb = {
  words: "git credential",
  summary: "Git credential helper: gives Git the token of this command",
  arguments: [["<action>", "get, store or erase, as Git says it"]],
  examples: [],
  async run(context, input) {
    const options = new Map(
      (await context.stdin()).split("\n").map((line): [string, string] => {
        const at = line.indexOf("=");
        return [line.slice(0, at), line.slice(at + 1)];
      }),
    );
    const { host, protocol } = new URL(context.client.base_url);
    // Another host must not get this token.
    const is_ours = options.get("host") === host && `${options.get("protocol")}:` === protocol;
    if (firstArgument(input) !== "get" || !is_ours) return { data: {}, text: "" };
    const password = context.token();
    return { data: { username: "hangar", password }, text: `username=hangar\npassword=${password}` };
  },
};

export const VERBS: readonly Verb[] = [remote, branch, credential, ...WEBHOOK_VERBS];
