/** Replicated SQLite for an app of any image: the platform runs a node beside its programs. */

import { SQLITE_SECRETS } from "#core/sqlite-node.ts";
import { ACK_MODES, checkedSqlite, type Sqlite } from "../app-file/sqlite.ts";
import { type Definition, newestDefinition } from "../deploy/definition.ts";
import { DRY_RUN, MESSAGE, reported } from "../deploy/history.ts";
import { machinesOf } from "../deploy/machines.ts";
import { groupName } from "../deploy/plan.ts";
import { release } from "../deploy/release.ts";
import { groupsWith, sqliteOf, withSqlite } from "../deploy/sqlite.ts";
import { TIMING_OPTIONS, timingOf } from "../deploy/timing.ts";
import { table } from "../output.ts";
import {
  type Context,
  firstArgument,
  type Input,
  numberOption,
  type Result,
  textOption,
  UsageError,
  type Verb,
} from "../verb.ts";
import { sqliteBackups, sqliteRestore } from "./backups.ts";
import { infoOf, type NodeLine, roleText } from "./nodes.ts";

const APP: readonly [string, string] = ["<app>", "the app"];

const attach: Verb = {
  words: "sqlite attach",
  summary: "Replicate the SQLite databases of an app: a release with a node in each machine that has a volume there",
  arguments: [APP],
  options: [
    ["--dir <dir>", "directory of the databases, on the machines' volume"],
    ["--backup <url>", "while primary, back up to https://host/bucket[/path]; credentials are secrets of the app"],
    ["--ack <mode>", `replicas that must have a transaction: ${ACK_MODES.join(", ")} (default: none)`],
    ["--cluster-size <n>", "with --ack quorum: how many machines have a node"],
    MESSAGE,
    ...TIMING_OPTIONS,
    DRY_RUN,
  ],
  examples: ["hangar sqlite attach ledger --dir /data --dry-run", "hangar sqlite attach ledger --dir /data"],
  completes: "apps",
  async run(context, input) {
    const app_name = firstArgument(input);
    const sqlite = wanted(input);
    const newest = await newestOf(context, app_name);
    refuseSecondDirectory(app_name, sqliteOf(newest), sqlite);
    const groups = groupsWith(newest, sqlite);
    if (groups.length === 0) throw new UsageError(noVolume(app_name, newest, sqlite));
    if (sqlite.backup !== undefined) await refuseWithoutCredentials(context, app_name);
    const done = await released(context, input, withSqlite(newest, sqlite), `sqlite attach ${sqlite.dir}`);
    if (typeof done !== "number") return done;
    const names = groups.map(({ name }) => name).join(", ");
    return {
      data: { app_name, version: done, sqlite, groups: groups.map(({ name }) => name) },
      text: `${app_name} runs release ${done}: databases in ${sqlite.dir} are replicated among machines of ${names}\n\`hangar sqlite status ${app_name}\` shows the primary; its machine writes, the others read`,
    };
  },
};

const detach: Verb = {
  words: "sqlite detach",
  summary: "Stop replicating the SQLite databases of an app; each machine keeps its files",
  arguments: [APP],
  options: [MESSAGE, ...TIMING_OPTIONS, DRY_RUN],
  examples: ["hangar sqlite detach ledger"],
  completes: "apps",
  async run(context, input) {
    const app_name = firstArgument(input);
    const newest = await newestOf(context, app_name);
    const sqlite = sqliteOf(newest);
    if (!sqlite) throw new UsageError(`${app_name} has no replicated SQLite; \`hangar sqlite attach ${app_name}\``);
    const done = await released(context, input, withSqlite(newest, undefined), "sqlite detach");
    if (typeof done !== "number") return done;
    const text = `${app_name} runs release ${done}: each machine has its own databases in ${sqlite.dir} from now on`;
    return { data: { app_name, version: done, sqlite: null }, text };
  },
};

const status: Verb = {
  words: "sqlite status",
  summary: "Show the nodes of an app's replicated SQLite: primary, term, lag, position of each database",
  arguments: [APP],
  examples: ["hangar sqlite status ledger"],
  completes: "apps",
  live: true,
  async run(context, input) {
    const app_name = firstArgument(input);
    const machines = (await machinesOf({ context, app_name })).filter(({ config }) => config.sqlite);
    if (machines.length === 0)
      return {
        data: { app_name, nodes: [] },
        text: `${app_name} has no replicated SQLite; \`hangar sqlite attach ${app_name}\``,
      };
    const nodes = await Promise.all(
      machines.map(async (machine): Promise<NodeLine> => {
        const { id, name, state, config } = machine;
        const own = {
          machine_id: id,
          machine_name: name,
          group: groupName(machine) ?? "",
          dir: config.sqlite?.dir ?? "",
        };
        if (state !== "started") return { ...own, node: null, reason: `the machine is ${state}` };
        return { ...own, ...(await infoOf(context, { app_name, machine_id: id })) };
      }),
    );
    return { data: { app_name, nodes }, text: statusText(nodes) };
  },
};

export const VERBS: readonly Verb[] = [attach, detach, status, sqliteBackups, sqliteRestore];

function wanted(input: Input): Sqlite {
  const [dir, backup, ack] = ["dir", "backup", "ack"].map((name) => textOption(input, name));
  if (dir === undefined) throw new UsageError("name the directory of the databases: --dir /data");
  const size = input.options["clusterSize"];
  const cluster_size = size === undefined ? undefined : numberOption({ ...input, options: { size } }, "size");
  const given = { dir, backup, ack: ack as Sqlite["ack"], cluster_size };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return checkedSqlite(set, "sqlite attach");
}

async function newestOf(context: Context, app_name: string): Promise<Definition> {
  const newest = await newestDefinition(context, app_name);
  if (newest) return newest;
  throw new UsageError(
    `${app_name} was never deployed, and attaching is a release: \`hangar deploy\` makes the first one`,
  );
}

/** The nodes of an app are one cluster, and databases of two directories would take turns in it. */
function refuseSecondDirectory(app_name: string, before: Sqlite | undefined, { dir }: Sqlite): void {
  if (!before || before.dir === dir) return;
  throw new UsageError(
    `${app_name} has replicated SQLite in ${before.dir} already, and an app has one directory: \`hangar sqlite detach ${app_name}\` first`,
  );
}

function noVolume(app_name: string, { groups }: Definition, { dir }: Sqlite): string {
  const mounts = groups.flatMap(({ name, mount }) => (mount ? [`${mount.rest.path} in ${name}`] : []));
  const there = mounts.length > 0 ? `its volumes are at ${mounts.join(", ")}` : "its machines have no volume";
  return `no machine of ${app_name} has a volume at ${dir}: ${there}. Write [[mounts]] with destination = "${dir}" into hangar.toml and deploy that`;
}

/** Without them every node would end at its start. */
async function refuseWithoutCredentials({ client }: Context, app_name: string): Promise<void> {
  const needed = new Set(SQLITE_SECRETS.slice(0, 2));
  for await (const { name } of client.list("GET /v1/apps/:app_name/secrets", { params: { app_name } }))
    needed.delete(name);
  if (needed.size === 0) return;
  const missing = [...needed];
  const set = missing.map((name) => `${name}=…`).join(" ");
  throw new UsageError(
    `--backup needs the credentials of the bucket, and ${app_name} has no secret ${missing.join(" and ")}: \`hangar secrets set ${set} --app ${app_name}\``,
  );
}

/** The release's version, or the result of a dry run. */
async function released(
  context: Context,
  input: Input,
  definition: Definition,
  description: string,
): Promise<number | Result> {
  const app_name = firstArgument(input);
  if (input.options["dryRun"] === true) return await reported(context, app_name, definition);
  const message = textOption(input, "message");
  return (await release(context, app_name, definition, { description, message, timing: timingOf(input) })).version;
}

const statusText = (nodes: readonly NodeLine[]): string =>
  table(
    ["machine", "group", "role", "term", "lag", "databases"],
    nodes.map(({ machine_name, group, node, reason }) => [
      machine_name,
      group,
      node ? roleText(node) : "no node",
      node ? String(node.term) : "",
      node && !node.primary ? `${node.lag_ms} ms` : "",
      node
        ? [
            ...Object.entries(node.databases).map(([name, position]) => `${name} ${position}`),
            ...Object.entries(node.problems).map(([name, problem]) => `${name} ${problem.state}: ${problem.reason}`),
          ].join(", ")
        : reason,
    ]),
  );
