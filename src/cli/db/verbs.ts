import { firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";
import { CLUSTER_VERBS } from "./cluster.ts";
import { followNodes, NO_NODES, nodesText } from "./nodes.ts";

type Option = readonly [flags: string, words: string];

/** Options that authenticate a node or user. */
const CREDENTIALS: readonly Option[] = [
  ["--key-file <file>", "shared key of the nodes (or HANGAR_DB_KEY)"],
  ["--identity-issuer <url>", "instead of a key: machines with tokens of this issuer"],
  ["--identity-subject <sub>", "… whose subject is this, for example org:app:*"],
  ["--identity-jwks <url>", "… read its keys from here instead of the issuer's configuration"],
  ["--identity-socket <path>", "where this machine gets its own tokens (default: /.svc/api)"],
];

/** Options of `db node`, passed on unchanged. */
const NODE_OPTIONS: readonly Option[] = [
  ["--dir <dir>", "the databases are the files in this folder (required)"],
  ["--listen <address>", "address of /events and of the other nodes (default: 127.0.0.1:20202)"],
  [
    "--machine",
    "run in a machine of the platform: the app's machines are the nodes, and the app's lease elects the primary",
  ],
  ["--primary", "always be the primary (no election)"],
  ["--join <url>", "always replicate from the node at this address"],
  ["--lease <where>", "the holder of this lease is primary: platform:URL/APP/NAME, etcd:URL/NAME or sqlite:PATH"],
  ["--token-file <file>", "the token for a lease of the platform (or HANGAR_TOKEN)"],
  ["--lease-ttl <time>", "lease duration; a failover takes about this long (default: 2s)"],
  ["--no-candidate", "with --lease: follow, but never become primary"],
  ["--advertise <url>", "address at which other nodes reach this one"],
  ["--backup <where>", "while primary, copy transactions to a folder or to https://host/bucket[/path]"],
  ["--backup-keep <days>", "retention of backups, in days (default: 30)"],
  ["--ack <mode>", "replicas that must have a transaction on disk before it is acknowledged: none, one or quorum"],
  ["--cluster-size <n>", "with --ack quorum: how many nodes the cluster has"],
  ["--max-unacked <n>", "with --ack: writers wait when this many transactions are unacknowledged (default: 1000)"],
  [
    "--proxy-listen <address>",
    "an HTTP proxy before the application: writes go to the primary's, reads to the local one",
  ],
  ["--proxy-app <url>", "… where that application listens, such as http://127.0.0.1:8080"],
  ["--proxy-db <name>", "… and the database whose transactions it writes"],
  ["--proxy-local <patterns>", "… paths that never leave this node, such as '/static/*,*.css'"],
  ["--proxy-primary <patterns>", "… paths that always go to the primary"],
  ["--proxy-queue <time>", "… how long writes wait for a primary (default: 30s)"],
  ["--proxy-advertise <url>", "… address at which other nodes reach the proxy"],
  ["--max-lag <time>", "how far replicas may be behind before writers wait, such as 500ms (default: 1s)"],
  ...CREDENTIALS,
  ["--trust-network", "allow a non-loopback address without a key or an identity"],
];

const dbNode: Verb = {
  words: "db node",
  summary: "Run a node of replicated SQLite in the foreground",
  options: NODE_OPTIONS,
  examples: ["hangar db node --dir ./data --listen 127.0.0.1:20202 --primary"],
  async run({ runProgram }, input) {
    if (!textOption(input, "dir")) throw new UsageError("name the database folder: --dir <dir>");
    const { exit } = await runProgram("replication/main.ts", handedOn(NODE_OPTIONS, input), "foreground");
    return { data: null, text: "", exit };
  },
};

/** Options as command line arguments. Commander turns `--no-x` into `x: false`. */
function handedOn(options: readonly Option[], input: Input): string[] {
  return options.flatMap(([flags]) => {
    const name = /--([\w-]+)/.exec(flags)?.[1] ?? "";
    const negated = name.startsWith("no-");
    const key = (negated ? name.slice(3) : name).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const value = input.options[key];
    if (negated) return value === false ? [`--${name}`] : [];
    if (value === true) return [`--${name}`];
    return typeof value === "string" ? [`--${name}`, value] : [];
  });
}

const NODE: readonly [string, string] = ["<node>", "the node's address, for example http://127.0.0.1:20202"];
const NAME: readonly [string, string] = ["<name>", "the database's name"];
const BACKUP: readonly [string, string] = ["<backup>", "the destination of `db node --backup`"];

/** A verb whose program takes the same options and prints one JSON object. */
function admin(
  description: string,
  summary: string,
  { options = [], ...more }: Pick<Verb, "arguments" | "options" | "examples">,
): Verb {
  return {
    words: description,
    summary,
    ...more,
    options,
    async run({ runProgram }, input) {
      const verb = description.split(" ")[1] ?? "";
      const given = input.args.filter((text) => text !== undefined);
      const { exit, text } = await runProgram(
        "replication/admin.ts",
        [verb, ...handedOn(options, input), "--", ...given],
        "quiet",
      );
      return { data: text === "" ? null : (JSON.parse(text) as unknown), text, exit };
    },
  };
}

export const dbInfo = admin("db info", "Show a node: role, term, positions, replicas", {
  arguments: [NODE],
  examples: ["hangar db info $DB_NODE"],
});

export const dbWait = admin(
  "db wait",
  "Wait until a transaction is on a node; without one, until what was written there is durable",
  {
    arguments: [NODE, NAME, ["[txid]", "the transaction, or a position as `db wait` prints it on another node"]],
    options: [["--timeout <time>", "how long to wait, such as 500ms or 30s (default: 5s)"]],
    examples: ["hangar db wait $DB_NODE app.db", "hangar db wait $DB_NODE app.db 0000000000000001 --timeout 30s"],
  },
);

export const dbPromote = admin("db promote", "Promote a node to primary; the old primary hands over without loss", {
  arguments: [NODE],
  options: [["--force", "if there is no primary: even if this node lacks the last transactions"], ...CREDENTIALS],
  examples: ["hangar db promote $DB_NODE"],
});

const dbRun: Verb = {
  words: "db run",
  summary: "Run a command on a replica that may write to its database, such as a migration",
  arguments: [
    NODE,
    NAME,
    ["<command...>", "the command, after --; its writes are replicated to all nodes when it ends"],
  ],
  options: CREDENTIALS,
  examples: [
    `hangar db run $DB_REPLICA app.db -- sqlite3 "$DB_REPLICA_DIR/app.db" "CREATE TABLE IF NOT EXISTS more (n)"`,
  ],
  async run({ runProgram }, input) {
    const { args, rest } = input;
    const given = [
      ...args.slice(0, 2).filter((text) => text !== undefined),
      ...handedOn(CREDENTIALS, input),
      "--",
      ...rest,
    ];
    const { exit } = await runProgram("replication/run-locked.ts", given, "foreground");
    return { data: null, text: "", exit };
  },
};

export const dbExport = admin("db export", "Export a consistent copy of a database to a file", {
  arguments: [NODE, NAME, ["<file>", "the file to create; it must not exist"]],
  options: CREDENTIALS,
  examples: ["hangar db export $DB_NODE app.db copy.db"],
});

export const dbImport = admin("db import", "Import a file as a database of the cluster, in one transaction", {
  arguments: [NODE, NAME, ["<file>", "a SQLite database"]],
  options: CREDENTIALS,
  examples: ["hangar db import $DB_NODE app.db copy.db"],
});

export const dbBackups = admin("db backups", "List databases and times that a backup can restore", {
  arguments: [BACKUP],
  examples: ["hangar db backups $DB_BACKUP"],
});

export const dbRestore = admin(
  "db restore",
  "Restore a database from a backup, as of a moment or a transaction, to a file or into the cluster",
  {
    arguments: [BACKUP, NAME, ["[file]", "the file to create; it must not exist"]],
    options: [
      ["--at <time>", "as of this moment, for example 2026-01-02T03:04:05Z"],
      ["--txid <hex>", "as of this transaction"],
      ["--into <node>", "instead of a file: into the cluster of this primary, as one transaction on all nodes"],
      ...CREDENTIALS,
    ],
    examples: [
      "hangar db restore $DB_BACKUP app.db restored.db",
      "hangar db restore $DB_BACKUP app.db --into $DB_NODE",
    ],
  },
);

const dbNodes: Verb = {
  words: "db nodes",
  summary: "List database nodes in machines; --follow streams their transactions",
  options: [
    ["--org <slug>", "the organization (default: personal)"],
    ["--follow", "follow until interrupted; with --json, one JSON object per line"],
  ],
  examples: ["hangar db nodes"],
  live: true,
  async run({ client, say }, input) {
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    const headers = { accept: "application/json" };
    const { nodes } = await client.call("GET /v1/orgs/:org_slug/db_nodes", { params, headers });
    if (input.options["follow"] === true) {
      if (nodes.length === 0) say(`${NO_NODES}; waiting for one`);
      return await followNodes(client, params, input.options["json"] === true);
    }
    return { data: nodes, text: nodes.length === 0 ? NO_NODES : nodesText(nodes) };
  },
};

const dbLease: Verb = {
  words: "db lease",
  summary: "Show which node holds the lease of an app's databases",
  arguments: [
    ["<app>", "the app"],
    ["[name]", "the lease's name (default: default)"],
  ],
  examples: ["hangar db lease $APP"],
  completes: "apps",
  async run({ client }, input) {
    const params = { app_name: firstArgument(input), lease_name: input.args[1] ?? "default" };
    const { lease } = await client.call("GET /v1/apps/:app_name/db_leases/:lease_name", { params });
    const text = lease ? `${lease.node} at ${lease.url}, term ${lease.term}\n` : "no node holds the lease\n";
    return { data: lease, text };
  },
};

export const VERBS: readonly Verb[] = [
  dbNode,
  dbNodes,
  dbInfo,
  ...CLUSTER_VERBS,
  dbWait,
  dbPromote,
  dbRun,
  dbLease,
  dbExport,
  dbImport,
  dbBackups,
  dbRestore,
];
