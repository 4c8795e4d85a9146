/** A whole node, wired by hand: databases, server, election, backup. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import { Backup } from "./backup/backup.ts";
import type { Credentials } from "./credentials/credentials.ts";
import { Elector } from "./election/elector.ts";
import type { LeaseStore } from "./election/lease-store.ts";
import { REPLICATION_LIMITS, type Sizes } from "./limits.ts";
import { type AckMode, NO_ACK } from "./node/in-sync-replicas.ts";
import { ReplicationNode } from "./node/node.ts";
import { Peer } from "./node/peer.ts";
import { RemoteWrites } from "./node/remote-writes.ts";
import { createNodeServer } from "./node/server.ts";
import { HttpProxy, type ProxyOptions } from "./proxy/http-proxy.ts";
import type { Step } from "./wal/wal-writer.ts";

/** How a node gets its role: by a setting, or by a lease. */
export type Election =
  | { kind: "primary" }
  | { kind: "join"; url: string }
  | { kind: "lease"; leases: LeaseStore; candidate: boolean; ttl_ms?: number; renew_ms?: number; margin_ms?: number };

export interface StartOptions {
  dir: string;
  host: string;
  port: number;
  /** URL for other nodes, if it differs from the listening address. */
  advertise?: string;
  election: Election;
  /** How nodes authenticate each other. Without it a node listens on loopback only. */
  credentials?: Credentials;
  /** Listens anywhere without credentials: anyone who reaches the port can read, write and take over. */
  trust_network?: boolean;
  /** Where the primary uploads its transactions. */
  backup?: ObjectStore;
  /** Time range that reaches. */
  backup_keep_ms?: number;
  clock: Clock;
  sizes?: Sizes;
  /** Maximum lag of replicas before writers are throttled. */
  max_lag_ms?: number;
  /** Replicas that must have a transaction before it is acknowledged, and the limit of unacknowledged ones. */
  ack?: AckMode;
  max_unacked?: number;
  /** An HTTP proxy before the application. */
  proxy?: ProxyPlace;
  step?: (step: Step) => void;
  log(message: string): void;
  onFailure(error: unknown): void;
}

export interface ProxyPlace extends Omit<ProxyOptions, "log"> {
  host: string;
  port: number;
  /** Where other nodes reach it, when that is not the listening address. */
  advertise?: string;
}

export interface RunningNode {
  node: ReplicationNode;
  /** http://host:port */
  url: string;
  elector: Elector | undefined;
  proxy: HttpProxy | undefined;
  close(): Promise<void>;
  /** Closes it, after a replica has taken over what was written last. Without one it only closes. */
  retire(): Promise<void>;
}

export async function startNode(options: StartOptions): Promise<RunningNode> {
  const { dir, host, port, clock, log, onFailure, sizes, step, credentials, max_lag_ms } = options;
  if (!credentials && !options.trust_network && !isLoopback(host)) {
    throw new Error(
      `anyone who can reach ${host}:${port} could take over: give the nodes a key (--key-file) or an identity, or set --trust-network`,
    );
  }
  let remote_writes: RemoteWrites | undefined;
  // The port must be known before the node's URL; requests wait until then.
  const server = createNodeServer({
    get node() {
      return node;
    },
    ...(credentials ? { credentials } : {}),
    ...(options.backup ? { backup: options.backup } : {}),
    promote: (how) => promote(running, options, how),
    handOff: (successor) => handOff(running, successor),
    get halts() {
      return node.halts;
    },
    get remote_writes() {
      remote_writes ??= new RemoteWrites(node, credentials, log);
      return remote_writes;
    },
    log,
  });
  server.listen(port, host);
  await once(server, "listening");
  const url = options.advertise ?? listeningUrl(server, host);
  const node = new ReplicationNode({
    dir,
    hostname: new URL(url).host,
    clock,
    log,
    onFailure,
    ...(credentials ? { credentials } : {}),
    ...(sizes === undefined ? {} : { sizes }),
    ...(max_lag_ms === undefined ? {} : { max_lag_ms }),
    ...(options.ack === undefined ? {} : { ack: options.ack }),
    ...(options.max_unacked === undefined ? {} : { max_unacked: options.max_unacked }),
    ...(options.election.kind === "lease" ? { candidate: options.election.candidate } : {}),
    ...(step === undefined ? {} : { step }),
  });
  const proxy = options.proxy && (await startProxy(node, { ...options.proxy, log }));
  const stop = new AbortController();
  const { elector, run } = elect(node, url, options, stop.signal);
  // A fixed role is there at the start; an elected one comes later.
  if (!elector) await run;
  const backing_up = backUp(node, options, stop.signal);
  const running: RunningNode = {
    node,
    url,
    elector,
    proxy,
    close: async () => {
      stop.abort();
      await run;
      await backing_up;
      // Stops accepting requests first: later ones would reach a closed node.
      for (const listening of [server, proxy?.server]) {
        listening?.close();
        listening?.closeAllConnections();
      }
      await node.close();
    },
    retire: () => retire(running, options),
  };
  return running;
}

/** The next primary has everything, and clients do not wait until the lease expires. */
async function retire(running: RunningNode, { clock, log }: StartOptions): Promise<void> {
  const { node, elector } = running;
  const successor = isPrimary(node) && elector?.lease ? node.streams.replicas.find((one) => one.candidate) : undefined;
  if (successor) {
    try {
      await handOff(running, successor.node);
      log(`handed over to ${successor.hostname}`);
      const until_ms = clock.monotonic() + REPLICATION_LIMITS.retire_ms;
      while (node.role.kind !== "replica" && clock.monotonic() < until_ms) await clock.sleep(5);
    } catch (error) {
      log(`not handed over to ${successor.hostname}: ${messageOf(error)}`);
    }
  }
  await running.close();
}

async function startProxy(node: ReplicationNode, options: ProxyPlace & ProxyOptions): Promise<HttpProxy> {
  const { host, port, advertise, log } = options;
  const proxy = new HttpProxy(node, options);
  proxy.server.listen(port, host);
  await once(proxy.server, "listening");
  const url = advertise ?? listeningUrl(proxy.server, host);
  node.proxy = {
    url,
    counts: proxy.counts,
    get waiting() {
      return proxy.waiting;
    },
    get writing() {
      return proxy.writing;
    },
    get draining() {
      return proxy.draining;
    },
    set draining(draining) {
      proxy.draining = draining;
    },
  };
  log(`proxy listens on ${listeningUrl(proxy.server, host)}, before ${options.app.origin}`);
  return proxy;
}

/** Backs up while the node is primary. */
async function backUp(
  node: ReplicationNode,
  { backup: store, backup_keep_ms: keep_ms, clock, dir, log }: StartOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!store) return;
  const keep = keep_ms === undefined ? {} : { keep_ms };
  const scratch = join(dir, ".replication");
  const backup = new Backup({ directory: node.directory, store, clock, scratch, log, ...keep });
  node.keepAfter = (name) => backup.storedTxid(name);
  while (!signal.aborted) {
    if (node.role.kind === "primary") await backup.once();
    await clock.sleep(REPLICATION_LIMITS.backup_ms, signal).catch(() => undefined);
  }
}

/** Assigns the node's role, repeatedly if elected. */
function elect(
  node: ReplicationNode,
  url: string,
  { election, clock, log, onFailure, ack = NO_ACK }: StartOptions,
  signal: AbortSignal,
): { elector: Elector | undefined; run: Promise<void> } {
  if (election.kind === "primary") {
    // A node that was not primary before starts a new term.
    const term = node.was_primary ? node.term : node.term + 1;
    return { elector: undefined, run: node.becomePrimary(term).catch(onFailure) };
  }
  if (election.kind === "join") {
    return { elector: undefined, run: node.becomeReplica(election.url).catch(onFailure) };
  }
  const keeps_in_sync = ack.replicas > 0;
  const elector = new Elector({ ...election, node, url, clock, log, keeps_in_sync });
  node.acknowledgements.in_sync.publish = (nodes) => elector.setInSync(nodes);
  node.onHandoff = () => {
    void takeOver(elector, { clock, log, signal });
  };
  return { elector, run: elector.run(signal).catch(onFailure) };
}

/** The primary chose this node as its successor and has released, or is about to release, the lease. */
async function takeOver(
  elector: Elector,
  { clock, log, signal }: Pick<StartOptions, "clock" | "log"> & { signal: AbortSignal },
): Promise<void> {
  const until_ms = clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
  while (clock.monotonic() < until_ms && !signal.aborted) {
    try {
      if (await elector.stand()) return;
    } catch (error) {
      log(`taking over: ${String(error)}`);
    }
    await clock.sleep(10);
  }
}

/** POST /promote on a replica: requests a handover from its primary, and waits until it is primary itself. */
async function promote(
  { node, elector }: RunningNode,
  { clock, credentials }: StartOptions,
  { force }: { force: boolean },
): Promise<void> {
  if (!elector) fail("conflict", "the primary of this cluster is fixed by its settings; change --primary and --join");
  if (isPrimary(node)) return;
  if (node.role.kind !== "replica") {
    if (await elector.stand(force)) return;
    const why = force
      ? "another node has the lease; it expires when that node stops"
      : "this node may lack transactions";
    fail("conflict", `no primary is known to hand over, and the lease cannot be acquired: ${why}`);
  }
  const patience_ms = 2 * REPLICATION_LIMITS.handoff_ms;
  const peer = new Peer(node.role.primary, clock, credentials, patience_ms);
  await peer.json("POST", "/handoff", { node: node.id }, AbortSignal.timeout(patience_ms));
  const until_ms = clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
  while (clock.monotonic() < until_ms) {
    if (elector.lease && isPrimary(node)) return;
    await clock.sleep(5);
  }
  fail("conflict", "the primary handed over, but the lease could not be acquired");
}

/** Evaluated each time, because a handover changes it. */
function isPrimary(node: ReplicationNode): boolean {
  return node.role.kind === "primary";
}

async function handOff({ node, elector }: RunningNode, successor: string): Promise<void> {
  if (!elector) fail("conflict", "the primary of this cluster is fixed by its settings");
  await elector.handOff(successor, () => node.handOff(successor));
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function listeningUrl(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
