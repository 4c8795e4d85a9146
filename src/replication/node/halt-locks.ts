/**
 * The primary's side of writing from a replica: while a replica has the halt lock of a database, local applications
 * cannot write to it, and the replica's transactions are applied here. The lock expires when it is not renewed.
 */
import { randomBytes } from "node:crypto";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Position } from "../position.ts";
import type { Directory } from "./directory.ts";
import type { Streams } from "./streams.ts";
import type { Role } from "./types.ts";
import { FRAME, FrameReader, readTransaction } from "./wire.ts";

/** The node whose databases are locked. */
interface LockingNode {
  readonly clock: Clock;
  readonly role: Role;
  readonly directory: Directory;
  readonly streams: Streams;
}

interface HaltLock {
  id: string;
  replica: string;
  database: ReplicatedDatabase;
  timer: NodeJS.Timeout;
}

export class HaltLocks {
  readonly #node: LockingNode;
  readonly #locks = new Map<string, HaltLock>();

  constructor(node: LockingNode) {
    this.#node = node;
  }

  /** Stops the writers of a database for a replica. Returns its position. */
  async acquire(replica: string, name: string): Promise<{ id: string; position: Position }> {
    const database = this.#database(name);
    if (this.#locks.has(name)) fail("conflict", `a replica has the halt lock of ${name} already; try again later`);
    if (!this.#node.streams.replicas.some(({ node }) => node === replica)) {
      fail("conflict", `replica ${replica} is not connected`);
    }
    const { clock } = this.#node;
    const until_ms = clock.monotonic() + REPLICATION_LIMITS.halt_try_ms;
    while (!database.hold()) {
      if (clock.monotonic() > until_ms) fail("conflict", `an application holds the write lock of ${name}`);
      await clock.sleep(1);
    }
    // Two replicas may have waited for the same lock.
    if (this.#locks.has(name)) fail("conflict", `a replica has the halt lock of ${name} already; try again later`);
    database.pinned = true;
    const lock: HaltLock = { id: randomBytes(8).toString("hex"), replica, database, timer: this.#timer(name) };
    this.#locks.set(name, lock);
    await database.durable();
    this.#node.streams.pump(name);
    return { id: lock.id, position: database.position };
  }

  renew(name: string, id: string): void {
    const lock = this.#find(name, id);
    clearTimeout(lock.timer);
    lock.timer = this.#timer(name);
  }

  /** Applies what the replica wrote, in order. All or nothing. */
  async apply(name: string, id: string, bytes: Buffer): Promise<Position> {
    const { database, replica } = this.#find(name, id);
    const { role, streams } = this.#node;
    if (role.kind !== "primary") fail("conflict", "this node is not the primary");
    const reader = new FrameReader();
    reader.push(bytes);
    const files: Buffer[] = [];
    for (const { type, payload } of reader.frames()) {
      if (type === FRAME.transaction && readTransaction(payload).name === name)
        files.push(readTransaction(payload).ltx);
      else fail("invalid_request", `the body must be transactions of ${name}`);
    }
    try {
      database.apply(files, role.term, "when durable");
    } catch (error) {
      fail("conflict", `the transactions do not follow the current position: ${messageOf(error)}`);
    }
    // That replica has them; the others get them from here. Placed before they are durable, because then they are sent
    // to all who lack them.
    streams.place(replica, name, database.position);
    await database.durable();
    streams.pump(name);
    return database.position;
  }

  release(name: string, id: string): void {
    this.#find(name, id);
    this.#end(name);
  }

  /** This node is no longer primary: the locks are void, and databases stay held. */
  clear(): void {
    for (const { timer, database } of this.#locks.values()) {
      clearTimeout(timer);
      database.pinned = false;
    }
    this.#locks.clear();
  }

  #timer(name: string): NodeJS.Timeout {
    return setTimeout(() => this.#end(name), REPLICATION_LIMITS.halt_ms).unref();
  }

  #end(name: string): void {
    const lock = this.#locks.get(name);
    if (!lock) return;
    clearTimeout(lock.timer);
    this.#locks.delete(name);
    lock.database.pinned = false;
    if (this.#node.role.kind === "primary" && !lock.database.closed) lock.database.release();
  }

  #find(name: string, id: string): HaltLock {
    const lock = this.#locks.get(name);
    if (lock?.id === id && !lock.database.closed) return lock;
    return fail("conflict", `the halt lock of ${name} expired, or belongs to another holder`);
  }

  #database(name: string): ReplicatedDatabase {
    const { directory, role } = this.#node;
    if (role.kind !== "primary") fail("conflict", "this node is not the primary");
    return directory.get(name) ?? fail("not_found", `there is no database ${name}`);
  }
}
