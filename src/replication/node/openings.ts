/**
 * Opens databases in time slices: finding the position of a large one takes long, and meanwhile the others are
 * captured, replicas are served and leases renewed.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { ReplicatedDatabase } from "../database/database.ts";
import { PersistedState } from "../database/persisted-state.ts";
import type { FoundBy, Undone } from "../database/recover.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { NO_PAGES } from "../position.ts";
import { type Steps, WAIT } from "../steps.ts";
import { identityAt } from "../wal/files.ts";
import { lockHolders, usersOfDeleted } from "../wal/lock-holders.ts";
import type { Aside } from "./aside.ts";
import type { DirectoryOptions } from "./directory-options.ts";
import { settleOverwritten } from "./overwritten.ts";
import { type Problems, Quarantined } from "./problems.ts";

/** The part of the directory that opening needs. */
interface Place {
  readonly dir: string;
  readonly aside: Aside;
  readonly problems: Problems;
  stateDir(name: string): string;
}

/** Ways of finding the position in which earlier transactions may be undone without a trace in the log. */
const UNKNOWN_HISTORY: ReadonlySet<FoundBy> = new Set(["difference", "replaced"]);

export class Openings {
  readonly #place: Place;
  readonly #options: DirectoryOptions;
  readonly #running = new Map<string, Steps<ReplicatedDatabase>>();
  /** Databases whose name another file has: see `ReplicatedDatabase.retire`. The latest of each name. */
  readonly #retired = new Map<string, ReplicatedDatabase>();

  constructor(place: Place, options: DirectoryOptions) {
    this.#place = place;
    this.#options = options;
  }

  has(name: string): boolean {
    return this.#running.has(name);
  }

  names(): IterableIterator<string> {
    return this.#running.keys();
  }

  get size(): number {
    return this.#running.size;
  }

  begin(name: string): void {
    this.#running.set(name, this.steps(name));
  }

  /** Another file has the database's name. Its content becomes a transaction after those of the old one. */
  replace(database: ReplicatedDatabase): void {
    this.#place.problems.set(database.name, "replaced", "another file has its name and is being opened");
    this.#running.set(database.name, this.#replacing(database));
  }

  /** The database's WAL was deleted. Its content is checkpointed, then everyone starts anew. */
  healLog(database: ReplicatedDatabase): void {
    this.#place.problems.set(
      database.name,
      "replaced",
      "its write-ahead log was deleted; its content is being checkpointed",
    );
    this.#running.set(database.name, this.#healing(database));
  }

  /** The database's file is being written to outside SQLite. When that is over, it is examined. */
  overwritten(database: ReplicatedDatabase): void {
    const reason = "its file was written to outside SQLite, as by cp; writes are blocked until its content is checked";
    this.#place.problems.set(database.name, "replaced", reason);
    this.#running.set(database.name, this.#settling(database));
  }

  /** Continues for a while. Returns databases that are open by now. */
  advance(): ReplicatedDatabase[] {
    const { clock } = this.#options;
    const until_ms = clock.monotonic() + REPLICATION_LIMITS.open_slice_ms;
    const opened: ReplicatedDatabase[] = [];
    // A copy: unfinished ones go to the end, for fairness.
    for (const [name, steps] of Array.from(this.#running)) {
      this.#running.delete(name);
      const database = this.#step(name, steps, until_ms);
      if (database) opened.push(database);
      if (clock.monotonic() >= until_ms) break;
    }
    return opened;
  }

  close(): void {
    for (const steps of this.#running.values()) steps.return(undefined as never);
    this.#running.clear();
    for (const database of this.#retired.values()) database.abandon();
    this.#retired.clear();
  }

  #step(name: string, steps: Steps<ReplicatedDatabase>, until_ms: number): ReplicatedDatabase | undefined {
    const { problems } = this.#place;
    try {
      do {
        const { done, value } = steps.next();
        if (done) return value;
        if (value === WAIT) break;
      } while (this.#options.clock.monotonic() < until_ms);
    } catch (error) {
      problems.failed(name, error);
      return undefined;
    }
    this.#running.set(name, steps);
    if (!problems.get(name)) problems.set(name, "opening", "it is being read to find out where it stands");
    return undefined;
  }

  *steps(name: string): Steps<ReplicatedDatabase> {
    const { node_id, clock, onFailure, onTransactions, sizes, max_lag_ms, checkpointer, step } = this.#options;
    const { open_lock_ms, open_lock_most_ms } = REPLICATION_LIMITS;
    const path = join(this.#place.dir, name);
    const dir = this.#place.stateDir(name);
    this.#removeStaleLog(name, path, dir);
    const database = yield* ReplicatedDatabase.opening({
      name,
      path,
      dir,
      node_id,
      clock,
      onFailure,
      lock_ms: Math.min(open_lock_ms * 2 ** Math.min(this.#place.problems.tries(name), 16), open_lock_most_ms),
      onTransactions: (infos) => onTransactions(name, infos),
      ...(sizes === undefined ? {} : { sizes }),
      ...(max_lag_ms === undefined ? {} : { max_lag_ms }),
      ...(checkpointer === undefined ? {} : { checkpointer }),
      ...(step === undefined ? {} : { step }),
    });
    let done = false;
    try {
      yield* this.#keepUndone(database);
      done = true;
      return database;
    } finally {
      if (!done) database.abandon();
    }
  }

  /**
   * Removes the WAL of a database that was replaced while no node ran: SQLite would apply its pages to the new file.
   */
  #removeStaleLog(name: string, path: string, dir: string): void {
    const known = new PersistedState(dir).loadFiles();
    if (!known || known.database === identityAt(path) || known.wal !== identityAt(`${path}-wal`)) return;
    const users = lockHolders(`${path}-shm`);
    if (users.length > 0) {
      throw new Quarantined(
        "replaced",
        `the file was replaced, but process ${users.join(" and ")} still uses the write-ahead log of the old one: stop it`,
      );
    }
    for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
    this.#options.log(`${name}: the file was replaced; the write-ahead log of the old one is removed`);
  }

  *#settling(database: ReplicatedDatabase): Steps<ReplicatedDatabase> {
    const { name, path } = database;
    const { dir, problems } = this.#place;
    const { clock, log } = this.#options;
    let as_before = false;
    try {
      as_before = (yield* settleOverwritten(database, { dir, clock, problems })) === "as before";
      if (as_before) return database;
    } finally {
      if (!as_before) database.abandon();
    }
    this.#removeStaleLog(name, path, this.#place.stateDir(name));
    log(`${name}: was overwritten in place; replicas and backups have the transactions before that`);
    return yield* this.steps(name);
  }

  *#replacing(database: ReplicatedDatabase): Steps<ReplicatedDatabase> {
    const { name, path } = database;
    let retired = false;
    try {
      // A running transaction may finish: it belongs to the old file.
      while (!database.hold()) yield WAIT;
      const kept_at = yield* this.#place.aside.copying(database);
      database.retire();
      this.#retired.get(name)?.abandon();
      this.#retired.set(name, database);
      retired = true;
      // The new file's own WAL must stay; the old one's would be applied to it.
      if (database.isOwnWal(identityAt(`${path}-wal`))) {
        for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      }
      this.#options.log(`${name}: another file has its name; the previous one was moved to ${kept_at}`);
    } finally {
      if (!retired) database.abandon();
    }
    return yield* this.steps(name);
  }

  /**
   * Programs with the deleted WAL open would keep writing to it, and others to a new one. So writes are blocked until
   * the last of them has closed it; reads continue, because all of it is in the database.
   */
  *#healing(database: ReplicatedDatabase): Steps<ReplicatedDatabase> {
    const { name, path } = database;
    try {
      while (!database.hold()) yield WAIT;
      database.emptyLog();
      for (let users = usersOfDeleted(`${path}-wal`); users.length > 0; users = usersOfDeleted(`${path}-wal`)) {
        const who = `process ${users.join(" and ")}`;
        const reason = `its write-ahead log was deleted, but ${who} still has it open: restart it; writes are blocked until then`;
        if (this.#place.problems.get(name)?.reason !== reason) this.#place.problems.set(name, "replaced", reason);
        yield WAIT;
      }
    } finally {
      database.abandon();
    }
    return yield* this.steps(name);
  }

  /** Keeps what the file undoes, and reports it. */
  *#keepUndone(database: ReplicatedDatabase): Steps<void> {
    const { name, undone, found_by, position } = database;
    const { onUndone } = this.#options;
    if (undone) {
      const count = undone.last.txid - undone.after;
      const where = yield* this.#copyUndone(database, undone);
      onUndone(
        count,
        `${name}: an older file was restored, as transaction ${undone.after} left it; ${count} transactions are undone on all nodes${where}`,
      );
    } else if (UNKNOWN_HISTORY.has(found_by)) {
      onUndone(
        0,
        `${name}: another file took its place, or it was written to while no node ran: that is transaction ${position.txid}; replicas copy what they had before to their .replication/aside`,
      );
    }
  }

  *#copyUndone(database: ReplicatedDatabase, undone: Undone): Steps<string> {
    // An undone deletion leaves nothing to keep.
    if (undone.last.checksum === NO_PAGES) return "";
    try {
      return `, copied to ${yield* this.#place.aside.copyingUndone(database, undone)}`;
    } catch (error) {
      return `, which could not be copied aside: ${messageOf(error)}`;
    }
  }
}
