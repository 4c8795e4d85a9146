/**
 * The replica's side of the halt lock: POST /lock allows applications on this node to write to one database, POST
 * /unlock sends their transactions to the primary. For migrations that must run here; other writes belong to the
 * primary.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { fail } from "#core/errors.ts";
import type { Credentials } from "../credentials/credentials.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position, parsePosition } from "../position.ts";
import type { ReplicationNode } from "./node.ts";
import { Peer } from "./peer.ts";
import { transactionHead } from "./wire.ts";

interface Lock {
  id: string;
  peer: Peer;
  database: ReplicatedDatabase;
  /** Position of the database when it was locked. */
  from: Position;
  renewing: NodeJS.Timeout;
  /** Ends the lock when it is not renewed. */
  ending: NodeJS.Timeout;
}

export class RemoteWrites {
  readonly #node: ReplicationNode;
  readonly #credentials: Credentials | undefined;
  readonly #locks = new Map<string, Lock>();
  readonly #log: (message: string) => void;

  constructor(node: ReplicationNode, credentials: Credentials | undefined, log: (message: string) => void) {
    this.#node = node;
    this.#credentials = credentials;
    this.#log = log;
  }

  /** When this has returned, applications on this node may write to the database. */
  async lock(name: string): Promise<{ id: string; position: string }> {
    const { role, id: node, clock, waits } = this.#node;
    if (role.kind !== "replica") fail("conflict", "this is for replicas that follow a primary; elsewhere just write");
    if (this.#locks.has(name)) fail("conflict", `${name} is locked already; try again later`);
    const peer = new Peer(role.primary, clock, this.#credentials, REPLICATION_LIMITS.asked_ms);
    const halted = (await peer.json("POST", "/halt", { node, name }, NEVER)) as { id: string; position: string };
    const from = parsePosition(halted.position) ?? fail("internal", "the primary named no position");
    const here = (): Position | undefined => this.#node.directory.get(name)?.position;
    const caughtUp = (): boolean => here()?.txid === from.txid && here()?.checksum === from.checksum;
    if (!(await waits.until(name, caughtUp, REPLICATION_LIMITS.halt_ms))) {
      fail("wait_timeout", `${name} did not reach ${halted.position}, where the primary is`);
    }
    const database = this.#node.directory.get(name) ?? fail("not_found", `there is no database ${name}`);
    const { halt_ms } = REPLICATION_LIMITS;
    const renewing = setInterval(() => void this.#renew(name, peer, halted.id), halt_ms / 4).unref();
    this.#locks.set(name, { id: halted.id, peer, database, from, renewing, ending: this.#endLater(name, halted.id) });
    database.term = this.#node.term;
    database.release();
    this.#log(`${name}: applications write here until it is unlocked`);
    return { id: halted.id, position: formatPosition(from) };
  }

  /** The holder of the lock is still there. */
  renew(name: string, id: string): void {
    const lock = this.#find(name, id);
    clearTimeout(lock.ending);
    lock.ending = this.#endLater(name, id);
  }

  /** Sends what was written to the primary. On failure it is copied aside as a divergence. */
  async unlock(name: string, id: string): Promise<{ position: string; transactions: number }> {
    const lock = this.#find(name, id);
    const { database, peer, from } = lock;
    const { clock } = this.#node;
    while (!database.closed && !database.hold()) await clock.sleep(1);
    clearTimeout(lock.ending);
    this.#locks.delete(name);
    try {
      if (database.closed || this.#node.role.kind !== "replica")
        fail("conflict", `${name} was unlocked in the meantime`);
      const transactions = database.position.txid - from.txid;
      if (transactions > 0) await this.#send(name, lock);
      await peer.json("POST", "/unhalt", { name, id }, NEVER);
      this.#log(`${name}: unlocked, ${transactions} transactions were sent to the primary`);
      return { position: formatPosition(database.position), transactions };
    } finally {
      clearInterval(lock.renewing);
    }
  }

  async #send(name: string, { database, peer, id, from }: Lock): Promise<void> {
    const file = join(this.#node.dir, ".replication", `${name}.halt`);
    const hash = createHash("sha256");
    let bytes = 0;
    const fd = openSync(file, "w", 0o600);
    try {
      for (let txid = from.txid + 1; txid <= database.position.txid; txid++) {
        const ltx = database.log.read(txid) ?? fail("internal", `transaction ${txid} is not in the log`);
        for (const part of [transactionHead(name, ltx.length), ltx]) {
          writeAll(fd, part);
          hash.update(part);
          bytes += part.length;
        }
      }
      fsyncSync(fd);
      const body = { file, bytes, sha256: hash.digest("hex") };
      await peer.sendFile(`/tx?name=${encodeURIComponent(name)}&id=${id}`, body, NEVER);
    } finally {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }

  async #renew(name: string, peer: Peer, id: string): Promise<void> {
    try {
      await peer.json("POST", "/halt", { node: this.#node.id, name, id }, NEVER);
    } catch (error) {
      this.#log(`${name}: the halt lock could not be renewed: ${messageOf(error)}`);
    }
  }

  #endLater(name: string, id: string): NodeJS.Timeout {
    const end = (): void => {
      this.unlock(name, id).catch((error: unknown) => this.#log(`${name}: unlocking: ${messageOf(error)}`));
    };
    return setTimeout(end, REPLICATION_LIMITS.halt_ms).unref();
  }

  #find(name: string, id: string): Lock {
    const lock = this.#locks.get(name);
    if (lock?.id === id) return lock;
    return fail("conflict", `${name} is not locked with this id: it expired, or was unlocked`);
  }
}

const NEVER = new AbortController().signal;
