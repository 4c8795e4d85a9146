/** Everything a command line, or a test, does with replication: start a node, promote one, look at one. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { Backup } from "./backup/backup.ts";
import { LocalObjects } from "./backup/local-objects.ts";
import type { ObjectStore } from "./backup/object-store.ts";
import { type Restored, type RestoreOptions, restore } from "./backup/restore.ts";
import { Elector } from "./election/elector.ts";
import type { LeaseStore } from "./election/lease-store.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import { ReplicationNode } from "./node/node.ts";
import { Peer } from "./node/peer.ts";
import { createNodeServer } from "./node/server.ts";
import { Signer } from "./node/signature.ts";
import type { Step } from "./wal/wal-writer.ts";

/** How a node comes to its role: by a setting, or by a lease that only one node can have. */
export type Election =
  | { kind: "primary" }
  | { kind: "join"; url: string }
  | { kind: "lease"; leases: LeaseStore; candidate: boolean; ttl_ms?: number; renew_ms?: number; margin_ms?: number };

export interface StartOptions {
  dir: string;
  host: string;
  port: number;
  /** Where other nodes reach this one, when that is not the listening address. */
  advertise?: string;
  election: Election;
  /** Shared by all nodes of the cluster. Without it anybody who reaches the port can join. */
  key?: string;
  /** Where the primary copies its transactions to. */
  backup?: ObjectStore;
  clock: Clock;
  checkpoint_frames?: number;
  step?: (step: Step) => void;
  log(message: string): void;
  onFailure(error: unknown): void;
}

export interface RunningNode {
  node: ReplicationNode;
  /** http://host:port */
  url: string;
  elector: Elector | undefined;
  close(): Promise<void>;
}

export async function startNode(options: StartOptions): Promise<RunningNode> {
  const { dir, host, port, clock, log, onFailure, checkpoint_frames, step } = options;
  const signer = options.key === undefined ? undefined : new Signer(options.key);
  // The port must be known before the node can say who it is; requests wait until there is one.
  const server = createNodeServer({
    get node() {
      return node;
    },
    ...(signer ? { signer } : {}),
    promote: () => promote(running, options),
    handOff: (successor) => handOff(running, successor),
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
    ...(signer ? { signer } : {}),
    ...(checkpoint_frames === undefined ? {} : { checkpoint_frames }),
    ...(step === undefined ? {} : { step }),
  });
  const stop = new AbortController();
  const { elector, run } = elect(node, url, options, stop.signal);
  const backing_up = backUp(node, options, stop.signal);
  const running: RunningNode = {
    node,
    url,
    elector,
    close: async () => {
      stop.abort();
      await run;
      await backing_up;
      server.closeAllConnections();
      await node.close();
      server.close();
    },
  };
  return running;
}

/** Backs up while the node is primary: one node of a cluster does. */
async function backUp(
  node: ReplicationNode,
  { backup: store, clock, dir, log }: StartOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!store) return;
  const backup = new Backup({ directory: node.directory, store, clock, scratch: join(dir, ".replication"), log });
  node.keepAfter = (name) => backup.storedTxid(name);
  while (!signal.aborted) {
    if (node.role.kind === "primary") await backup.once();
    await clock.sleep(REPLICATION_LIMITS.backup_ms, signal).catch(() => undefined);
  }
}

/** Gives the node its role, and goes on doing so when it is elected. */
function elect(
  node: ReplicationNode,
  url: string,
  { election, clock, log, onFailure }: StartOptions,
  signal: AbortSignal,
): { elector: Elector | undefined; run: Promise<void> } {
  if (election.kind === "primary") {
    // A node that was not primary before becomes it by somebody's decision; that is a new term.
    const term = node.was_primary ? node.term : node.term + 1;
    return { elector: undefined, run: node.becomePrimary(term).catch(onFailure) };
  }
  if (election.kind === "join") {
    return { elector: undefined, run: node.becomeReplica(election.url).catch(onFailure) };
  }
  const elector = new Elector({ ...election, node, url, clock, log });
  node.onHandoff = () => {
    void takeOver(elector, clock, log);
  };
  return { elector, run: elector.run(signal).catch(onFailure) };
}

/** The primary has named this node as its successor, and has told, or is about to tell, the lease store. */
async function takeOver(elector: Elector, clock: Clock, log: (message: string) => void): Promise<void> {
  const until_ms = clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
  while (clock.monotonic() < until_ms) {
    try {
      if (await elector.stand()) return;
    } catch (error) {
      log(`taking over: ${String(error)}`);
    }
    await clock.sleep(10);
  }
}

/** POST /promote on a replica: it asks its primary to hand over, and waits until it is primary itself. */
async function promote({ node, elector }: RunningNode, { clock, key }: StartOptions): Promise<void> {
  if (!elector) fail("conflict", "the primary of this cluster is fixed by its settings; change --primary and --join");
  if (node.role.kind === "primary") return;
  if (node.role.kind === "none") {
    if (await elector.stand()) return;
    fail("conflict", "no primary is known to hand over, and the lease cannot be had");
  }
  const signer = key === undefined ? undefined : new Signer(key);
  const peer = new Peer(node.role.primary, clock, signer);
  await peer.json("POST", "/handoff", { node: node.id }, AbortSignal.timeout(2 * REPLICATION_LIMITS.handoff_ms));
  const until_ms = clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
  while (clock.monotonic() < until_ms) {
    if (elector.lease) return;
    await clock.sleep(5);
  }
  fail("conflict", "the primary handed over, but the lease could not be had");
}

async function handOff({ node, elector }: RunningNode, successor: string): Promise<void> {
  if (!elector) fail("conflict", "the primary of this cluster is fixed by its settings");
  await elector.handOff(successor, () => node.handOff(successor));
}

function listeningUrl(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Asks a running node to become primary: what `db promote` does. */
export async function promoteNode(url: string, key: string | undefined, clock: Clock): Promise<unknown> {
  const peer = new Peer(url, clock, key === undefined ? undefined : new Signer(key));
  return await peer.json("POST", "/promote", {}, AbortSignal.timeout(4 * REPLICATION_LIMITS.handoff_ms));
}

/** What a running node says about itself: what `db info` shows. */
export async function nodeInfo(url: string, clock: Clock): Promise<unknown> {
  return await new Peer(url, clock, undefined).json("GET", "/info", undefined, AbortSignal.timeout(5000));
}

/** Makes a database file out of a backup directory: what `db restore` does. */
export async function restoreFrom(backup_dir: string, options: Omit<RestoreOptions, "store">): Promise<Restored> {
  return await restore({ ...options, store: new LocalObjects(backup_dir) });
}
