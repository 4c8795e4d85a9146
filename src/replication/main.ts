/** `hangar db node` as a program of its own: arguments in, a running node out. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { isoTime, systemClock } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { SQLITE_PORT } from "#core/sqlite-node.ts";
import { type Election, startNode } from "./commands.ts";
import { LEASE_FORMS, openLeases } from "./election/open-leases.ts";
import { ackIn, backupAt, CREDENTIAL_OPTIONS, credentialsFrom, nodeAddress } from "./flags.ts";
import type { InMachine } from "./in-machine.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import { NodeClient } from "./node-client.ts";
import { prepareDirectory } from "./prepare-directory.ts";
import { PROXY_OPTIONS, proxyIn } from "./proxy/flags.ts";
import { notifyWhenReady } from "./ready.ts";

const USAGE = `usage: main.ts --dir DIR [--listen 127.0.0.1:20202] [--primary | --join http://host:port | --lease WHERE | --machine]
  --dir DIR                the databases are the files in DIR
  --listen HOST:PORT       address of /events and of the other nodes
  --advertise URL          where other nodes reach this one, when that is not the listening address
  --primary                always be the primary (no election)
  --join URL               this node follows the node at URL, always
  --lease WHERE            the holder of the lease is primary; WHERE is ${LEASE_FORMS}
  --machine                run in a machine of the platform: the app's machines are the nodes, and the app's lease elects the primary
  --token-file FILE        the token for a lease of the platform (or HANGAR_TOKEN)
  --lease-ttl TIME         lease duration; a failover takes about this long (default: 2s)
  --no-candidate           with --lease: follow, but never become primary
  --backup WHERE           while primary, copy transactions to a folder or to https://host/bucket[/path]
  --backup-keep DAYS       retention of backups, in days (default: 30)
  --max-lag TIME           how far replicas may be behind before writers wait, such as 500ms or 1s (default: 1s)
  --ack MODE               a transaction counts as acknowledged when so many replicas have it on disk: none, one or quorum
  --cluster-size N         with --ack quorum: how many nodes the cluster has
  --max-unacked N          with --ack: writers wait when so many transactions are not acknowledged (default: ${REPLICATION_LIMITS.max_unacked})
  --proxy-listen HOST:PORT an HTTP proxy before the application: writes go to the primary's, reads to the one beside this node
  --proxy-app URL          … where that application listens, such as http://127.0.0.1:8080
  --proxy-db NAME          … and the database whose transactions it writes
  --proxy-local PATTERNS   … paths that never leave this node, such as '/static/*,*.css'
  --proxy-primary PATTERNS … paths that always go to the primary
  --proxy-queue TIME       … how long writes wait for a primary (default: 30s)
  --proxy-advertise URL    … where other nodes reach the proxy
  --key-file FILE          a key the nodes share (or HANGAR_DB_KEY)
  --identity-issuer URL    instead of a key: machines with tokens of this issuer are nodes
  --identity-subject SUB   … whose subject is this: org:app:machine, or org:app:*
  --identity-jwks URL      … with its keys at this URL, instead of the one in the issuer's configuration
  --identity-socket PATH   where this machine gets its own tokens (default: /.svc/api)
  --backups                with --machine: print what the backup of this machine's node can restore, and exit
  --restore NAME           with --machine: restore a database from that backup, as of --at TIME or --txid HEX, and exit
  --ready-fd N             write a line to this descriptor once applications may start
  --trust-network          allow a non-loopback address without a key or an identity
`;

const OPTIONS = {
  dir: { type: "string" },
  listen: { type: "string" },
  advertise: { type: "string" },
  primary: { type: "boolean" },
  join: { type: "string" },
  lease: { type: "string" },
  machine: { type: "boolean" },
  "token-file": { type: "string" },
  "lease-ttl": { type: "string" },
  "no-candidate": { type: "boolean" },
  backup: { type: "string" },
  "backup-keep": { type: "string" },
  "max-lag": { type: "string" },
  ack: { type: "string" },
  "cluster-size": { type: "string" },
  "max-unacked": { type: "string" },
  ...PROXY_OPTIONS,
  backups: { type: "boolean", default: false },
  restore: { type: "string" },
  at: { type: "string" },
  txid: { type: "string" },
  "ready-fd": { type: "string" },
  "trust-network": { type: "boolean", default: false },
  ...CREDENTIAL_OPTIONS,
} as const;

type Flags = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

function log(message: string): void {
  process.stdout.write(`${isoTime(systemClock.now())} ${message}\n`);
}

function election(flags: Flags, machine: InMachine | undefined): Election {
  const given = [flags.primary, flags.join, flags.lease, flags.machine].filter((value) => value !== undefined).length;
  if (given > 1) throw new Error("give one of --primary, --join, --lease and --machine");
  if (flags.join !== undefined) return { kind: "join", url: nodeAddress("--join", flags.join) };
  const named = { clock: systemClock, token_file: flags["token-file"] };
  const leases = flags.lease === undefined ? machine?.leases : openLeases(flags.lease, named);
  if (leases === undefined) return { kind: "primary" };
  const ttl = flags["lease-ttl"] === undefined ? {} : { ttl_ms: ttlIn(flags["lease-ttl"]) };
  return { kind: "lease", leases, candidate: flags["no-candidate"] !== true, ...ttl };
}

function daysIn(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`--backup-keep is a number of days, not ${JSON.stringify(text)}`);
  return Number(text) * 24 * 60 * 60 * 1000;
}

function lagIn(text: string): number {
  const ms = parseDuration(text) ?? 0;
  if (ms >= LEAST_LAG_MS) return ms;
  throw new Error(
    `--max-lag is a time of at least ${LEAST_LAG_MS}ms, such as 500ms or 1s, not ${JSON.stringify(text)}`,
  );
}

function ttlIn(text: string): number {
  const ms = parseDuration(text) ?? 0;
  const [least_ms, most_ms] = LEASE_TTL_MS;
  if (ms >= least_ms && ms <= most_ms) return ms;
  throw new Error(
    `--lease-ttl is a time between ${least_ms / 1000}s and ${most_ms / 1000}s, not ${JSON.stringify(text)}`,
  );
}

function descriptorIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,4}$/.test(text) && Number(text) > 2) return Number(text);
  throw new Error(`--ready-fd is the number of an open descriptor, at least 3, not ${JSON.stringify(text)}`);
}

/** The minimum: a transaction is captured at the next poll, and applied together with others. */
const LEAST_LAG_MS = 100;

/** What lease stores take. */
const LEASE_TTL_MS = [1000, 60_000] as const;

/** Loaded only where it is used. */
async function asMachine(socket: string): Promise<InMachine> {
  const { inMachine } = await import("./in-machine.ts");
  return await inMachine(socket);
}

/** Asks the node that runs in this machine already. */
async function askNode({ restore, at, txid, ...flags }: Flags): Promise<void> {
  const { credentials } = await asMachine(flags["identity-socket"]);
  const port = /:(\d+)$/.exec(flags.listen ?? "")?.[1] ?? SQLITE_PORT;
  const node = new NodeClient(`http://127.0.0.1:${port}`, systemClock, credentials);
  const moment = { ...(at === undefined ? {} : { at }), ...(txid === undefined ? {} : { txid }) };
  const answer = restore === undefined ? await node.backups() : await node.restore({ name: restore, ...moment });
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function runNode(flags: Flags): Promise<void> {
  const listen = flags.listen ?? (flags.machine ? "[::]:20202" : "127.0.0.1:20202");
  const [, host, port] = /^(.*):(\d+)$/.exec(listen) ?? [];
  if (flags.dir === undefined || host === undefined)
    throw new Error(`--dir is needed, --listen is HOST:PORT\n${USAGE}`);
  const ready_fd = descriptorIn(flags["ready-fd"]);
  const dir = resolve(flags.dir);
  prepareDirectory(dir);
  const machine = flags.machine ? await asMachine(flags["identity-socket"]) : undefined;
  const credentials = (await credentialsFrom(flags)) ?? machine?.credentials;
  const advertise = flags.advertise ?? machine?.url(Number(port));
  const running = await startNode({
    // Absolute, because others read it at /info.
    dir,
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port),
    ...(advertise === undefined ? {} : { advertise }),
    ...(credentials === undefined ? {} : { credentials }),
    ...(flags.backup === undefined ? {} : { backup: await backupAt(flags.backup, systemClock) }),
    ...(flags["backup-keep"] === undefined ? {} : { backup_keep_ms: daysIn(flags["backup-keep"]) }),
    ...(flags["max-lag"] === undefined ? {} : { max_lag_ms: lagIn(flags["max-lag"]) }),
    ...ackIn(flags),
    ...proxyIn(flags, advertise),
    trust_network: flags["trust-network"],
    election: election(flags, machine),
    clock: systemClock,
    log,
    onFailure: (error) => {
      // The content of the disk is unknown; the next start reads it.
      log(`stopping: ${messageOf(error)}`);
      process.exit(1);
    },
  });
  log(`node ${running.node.id} listens on ${running.url}`);
  const end = (): void => {
    running.retire().then(
      () => process.exit(0),
      (error: unknown) => {
        log(`stopping: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);
  // `hangar db node` was killed: its supervisor assumes that the node has stopped, so it must stop.
  if (process.connected) process.once("disconnect", end);
  if (ready_fd !== undefined) await notifyWhenReady(ready_fd, running.node, { clock: systemClock, log });
}

async function main(): Promise<void> {
  const { values: flags } = parseArgs({ options: OPTIONS });
  const asks = flags.backups || flags.restore !== undefined;
  await (asks ? askNode(flags) : runNode(flags));
}

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(2);
});
