import { bytesText, facts, table } from "../output.ts";
import { print, printJsonLine } from "../terminal-text.ts";
import {
  type Context,
  type Input,
  listOption,
  numberOption,
  type Result,
  textOption,
  UsageError,
  type Verb,
} from "../verb.ts";
import { APP, type Found, findMachine, MACHINE, NONCE } from "./find.ts";
import { type EventLine, eventText } from "./follow.ts";
import { attach, isTerminal } from "./terminal.ts";

export const machinesExec: Verb = {
  words: "machines exec",
  summary: "Run a command in a machine and exit with its code",
  arguments: [MACHINE, ["<command...>", "the command, after --"]],
  options: [
    APP,
    ["--timeout <seconds>", "timeout in seconds"],
    ["--tty", "allocate a terminal, for interactive programs"],
  ],
  completes: "machines",
  examples: ["hangar machines exec $MACHINE -- echo hello"],
  async run(context, input) {
    const found = await findMachine(context, input);
    if (input.options["tty"] === true) return await onTerminal(context, found, input);
    const { params } = found;
    const timeout = numberOption(input, "timeout");
    const body = { command: [...input.rest], ...(timeout === undefined ? {} : { timeout }) };
    const data = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/exec", { params, body });
    // As with ssh, the program's output goes unescaped to this command's stdout and stderr.
    if (data.stderr) process.stderr.write(data.stderr.replace(/\n?$/, "\n"));
    return { data, text: data.stdout.replace(/\n$/, ""), raw: true, exit: data.exit_code };
  },
};

async function onTerminal(context: Context, found: Found, input: Input): Promise<Result> {
  if (!isTerminal()) throw new UsageError("--tty needs a terminal, but stdin or stdout is not one; leave it out");
  if (textOption(input, "timeout")) throw new UsageError("a terminal has no --timeout: it ends with its program");
  return await attach(context, found, input.rest);
}

export const machinesPs: Verb = {
  words: "machines ps",
  summary: "List the processes of a machine",
  arguments: [MACHINE],
  options: [APP],
  completes: "machines",
  examples: ["hangar machines ps $MACHINE"],
  async run(context, input) {
    const { params } = await findMachine(context, input);
    const data = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/ps", { params });
    return {
      data,
      text: table(
        ["pid", "cpu time", "memory", "command"],
        data.map(({ pid, cpu, rss, command }) => [
          String(pid),
          `${(cpu / 1000).toFixed(2)} s`,
          bytesText(rss),
          command,
        ]),
      ),
    };
  },
};

export const machinesMetadata: Verb = {
  words: "machines metadata",
  summary: "Show a machine's metadata, or set it: KEY=VALUE, KEY= removes",
  arguments: [MACHINE, ["[pairs...]", "KEY=VALUE, several at once"]],
  options: [APP, NONCE],
  completes: "machines",
  examples: ["hangar machines metadata $MACHINE role=web", "hangar machines metadata $MACHINE"],
  async run(context, input) {
    const { params, headers } = await findMachine(context, input);
    if (input.rest.length > 0) {
      const metadata = Object.fromEntries(input.rest.map(metadataPair));
      await context.client.call("PATCH /v1/apps/:app_name/machines/:machine_id/metadata", {
        params,
        headers,
        body: { metadata },
      });
    }
    const data = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/metadata", { params });
    const entries = Object.entries(data);
    return { data, text: entries.length === 0 ? "no metadata" : facts(entries) };
  },
};

function metadataPair(pair: string): [string, string | null] {
  const at = pair.indexOf("=");
  if (at < 1) throw new UsageError(`${pair} is not KEY=VALUE`);
  return [pair.slice(0, at), pair.slice(at + 1) || null];
}

const LEASE_ACTIONS = ["take", "show", "release"] as const;

export const machinesLease: Verb = {
  words: "machines lease",
  summary: "Take, show or release the lease of a machine",
  arguments: [["<action>", "take, show or release"], MACHINE],
  options: [
    APP,
    ["--ttl <seconds>", "duration in seconds (default: 30)"],
    ["--description <text>", "description"],
    ["--wait <seconds>", "wait this many seconds for it"],
    ["--nonce <nonce>", "nonce of the lease to refresh or release"],
  ],
  examples: ["hangar machines lease take $MACHINE --ttl 1 --description deploy"],
  async run(context, input) {
    const action = LEASE_ACTIONS.find((one) => one === input.args[0]);
    if (!action) throw new UsageError(`a lease can be taken, shown or released, not ${String(input.args[0])}`);
    const { params, headers } = await findMachine(context, input, 1);
    if (action === "release") {
      const { data } = await context.client.call("DELETE /v1/apps/:app_name/machines/:machine_id/lease", {
        params,
        headers,
      });
      return { data, text: "released" };
    }
    const path = "/v1/apps/:app_name/machines/:machine_id/lease" as const;
    const { data } =
      action === "show"
        ? await context.client.call(`GET ${path}`, { params })
        : await context.client.call(`POST ${path}`, {
            params,
            headers,
            query: { wait: numberOption(input, "wait") },
            body: { ttl: numberOption(input, "ttl"), description: textOption(input, "description") },
          });
    const expires = new Date(data.expires_at * 1000).toISOString();
    return {
      data,
      text: facts([
        ["nonce", data.nonce],
        ["owner", data.owner],
        ["description", data.description],
        ["expires", expires],
      ]),
    };
  },
};

export const machinesEvents: Verb = {
  words: "machines events",
  summary: "List events of a machine; --follow streams them, for one or for an organization",
  arguments: [["[machine]", "id or name; optional with --follow, then all"]],
  options: [
    APP,
    ["--org <slug>", "the organization (default: personal)"],
    ["--follow", "follow until interrupted; with --json, one JSON object per line"],
    ["--type <types...>", "only these types"],
  ],
  completes: "machines",
  examples: ["hangar machines events $MACHINE"],
  async run(context, input) {
    const types = listOption(input, "type");
    const wanted = (event: { type: string }): boolean => types.length === 0 || types.includes(event.type);
    if (input.options["follow"] === true) return await followEvents(context, input, wanted);
    if (!input.args[0]) throw new UsageError("name a machine, or use --follow for all");
    const { params } = await findMachine(context, input);
    const events = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/events", {
      params,
      query: { limit: 50 },
    });
    const shown = events.filter(wanted);
    return { data: shown, text: shown.map((event) => eventText(event as unknown as EventLine)).join("\n") };
  },
};

async function followEvents(context: Context, input: Input, wanted: (event: EventLine) => boolean) {
  const found = input.args[0] ? await findMachine(context, input) : undefined;
  const params = { org_slug: textOption(input, "org") ?? "personal" };
  const events = context.client.stream<"GET /v1/orgs/:org_slug/events", EventLine>("GET /v1/orgs/:org_slug/events", {
    params,
    query: {},
  });
  for await (const event of events) {
    if (!wanted(event) || (found && event.machine_id !== found.params.machine_id)) continue;
    if (input.options["json"] === true) printJsonLine(event);
    else print(`${event.app_name}/${event.machine_name}  ${eventText(event)}`);
  }
  return { data: null, text: "" };
}
