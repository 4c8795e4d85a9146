/** Backups of an app's replicated SQLite, through the node of the primary's machine: it alone has the bucket's credentials. */
import { setTimeout } from "node:timers/promises";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { NODE_PROGRAM } from "#core/sqlite-node.ts";
import { machinesOf } from "../deploy/machines.ts";
import type { Running } from "../deploy/plan.ts";
import { table } from "../output.ts";
import { type Context, firstArgument, textOption, UsageError, type Verb } from "../verb.ts";
import { infoOf } from "./nodes.ts";

interface Backup {
  name: string;
  /** The oldest and newest transaction that can be restored, 16 hex digits each. */
  first: string;
  last: string;
  /** When they were committed. */
  from: string | null;
  until: string | null;
}

interface Restored {
  name: string;
  position: string;
  /** When the newest restored transaction was committed. */
  written_at: string;
}

const APP: readonly [string, string] = ["<app>", "the app"];

export const sqliteBackups: Verb = {
  words: "sqlite backups",
  summary: "List what the backup of an app's replicated SQLite can restore: databases, from when to when",
  arguments: [APP],
  lists: true,
  examples: ["hangar sqlite backups ledger"],
  async run(context, input) {
    const app_name = firstArgument(input);
    const { databases } = await asked<{ databases: Backup[] }>(context, app_name, ["--backups"]);
    const rows = databases.map(({ name, from, until, first, last }) => [name, from ?? "", until ?? "", first, last]);
    const text =
      rows.length > 0
        ? table(["database", "from", "until", "first txid", "last txid"], rows)
        : `nothing of ${app_name} was backed up yet`;
    return { data: databases, text };
  },
};

export const sqliteRestore: Verb = {
  words: "sqlite restore",
  summary: "Restore a database of replicated SQLite from its backup, in one transaction, on all nodes",
  arguments: [APP, ["<database>", "its file name, as in `hangar sqlite backups`"]],
  options: [
    ["--at <time>", "as it was then, such as 2026-01-02T03:04:05Z (default: the newest state of the backup)"],
    ["--txid <txid>", "as it was after this transaction, in hex digits"],
  ],
  examples: ["hangar sqlite restore ledger app.db --at 2026-01-02T03:04:05Z"],
  completes: "apps",
  async run(context, input) {
    const app_name = firstArgument(input);
    const name = input.args[1] ?? "";
    const moment = (["at", "txid"] as const).flatMap((option) => {
      const value = textOption(input, option);
      return value === undefined ? [] : [`--${option}=${value}`];
    });
    const data = await asked<Restored>(context, app_name, [`--restore=${name}`, ...moment]);
    const text = `${name} is as it was at ${data.written_at}, now at position ${data.position}; programs see it as one more transaction`;
    return { data: { app_name, ...data }, text };
  },
};

/** What the node in the primary's machine answers to its own program, which that machine's identity lets in. */
async function asked<Answer>(context: Context, app_name: string, options: readonly string[]): Promise<Answer> {
  const { id } = await primaryOf(context, app_name);
  const { exit_code, stdout, stderr } = await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/exec", {
    params: { app_name, machine_id: id },
    body: { command: [...NODE_PROGRAM, "--machine", ...options], timeout: LONGEST_S },
  });
  if (exit_code === 0) return JSON.parse(stdout) as Answer;
  throw new ClientError(0, { error: stderr.trim() || `the node's program in ${id} ended with ${exit_code}` });
}

const LONGEST_S = 600;
/** Longer than a failover takes. */
const PRIMARY_MS = 30_000;
const AGAIN_MS = 500;
const GONE = new Set(["destroying", "destroyed"]);

async function primaryOf(context: Context, app_name: string): Promise<Running> {
  const until_ms = systemClock.monotonic() + PRIMARY_MS;
  for (;;) {
    const nodes = await nodesOf(context, app_name);
    const found = await Promise.all(
      nodes
        .filter(({ state }) => state === "started")
        .map(async (machine) => ({ machine, ...(await infoOf(context, { app_name, machine_id: machine.id })) })),
    );
    const primary = found.find(({ node }) => node?.primary);
    if (primary) return primary.machine;
    if (found.length === 0 || systemClock.monotonic() > until_ms)
      throw new ClientError(412, {
        error: `${app_name} has no primary: ${found.length} of ${nodes.length} machines with a node are started`,
        status: "wrong_state",
        hint: `hangar sqlite status ${app_name}`,
      });
    await setTimeout(AGAIN_MS);
  }
}

async function nodesOf(context: Context, app_name: string): Promise<Running[]> {
  const machines = (await machinesOf({ context, app_name })).filter(({ state }) => !GONE.has(state));
  const nodes = machines.filter(({ config }) => config.sqlite);
  if (nodes.length === 0)
    throw new UsageError(`${app_name} has no replicated SQLite: \`hangar sqlite attach ${app_name} --dir /data\``);
  if (nodes.some(({ config }) => config.sqlite?.backup !== undefined)) return nodes;
  const { dir } = nodes[0]?.config.sqlite ?? { dir: "/data" };
  throw new UsageError(
    `${app_name} has no backup: \`hangar sqlite attach ${app_name} --dir ${dir} --backup https://host/bucket\``,
  );
}
