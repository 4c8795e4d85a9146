/**
 * The databases of a node: the files in its directory that are SQLite databases, opened once each. The node's own
 * state is in the directory `.replication` beside them. A failure of one of them is recorded in `problems`, retried
 * later, and does not affect the others.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { type Known, lastKnown, recordDeletion } from "../database/deletion.ts";
import { PersistedState } from "../database/persisted-state.ts";
import { createFromSnapshot, type ReceivedSnapshot, receivedPages } from "../database/received-snapshot.ts";
import { PositionMismatch, type TransactionInfo } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, NOWHERE, type Position } from "../position.ts";
import { finish } from "../steps.ts";
import { pageSizeOf } from "../wal/database-header.ts";
import { identityAt } from "../wal/files.ts";
import { OverwriteWatch } from "../wal/overwrite-watch.ts";
import { Aside } from "./aside.ts";
import { isDatabaseName } from "./database-name.ts";
import type { DirectoryOptions } from "./directory-options.ts";
import { Openings } from "./openings.ts";
import { type ProblemState, Problems, Quarantined } from "./problems.ts";

/** Problems of an existing file; without the file they are void. */
const OF_A_FILE: ReadonlySet<ProblemState> = new Set(["opening", "busy", "full", "damaged", "replaced", "failed"]);

export interface Dropped {
  name: string;
  info: TransactionInfo;
  ltx: Buffer;
}

export class Directory {
  readonly dir: string;
  readonly aside: Aside;
  readonly problems: Problems;
  readonly #options: DirectoryOptions;
  readonly #databases = new Map<string, ReplicatedDatabase>();
  readonly #watches = new Map<string, OverwriteWatch>();
  readonly #openings: Openings;
  readonly #known = new Map<string, Known>();
  readonly #inode: number;
  term = 0;
  #mtime_ms = 0;
  #looked_ms = 0;

  constructor(options: DirectoryOptions) {
    const { dir, clock, log } = options;
    this.dir = dir;
    this.#options = options;
    this.aside = new Aside(dir, clock, log);
    this.problems = new Problems(clock, log);
    this.#openings = new Openings(this, options);
    mkdirSync(join(dir, ".replication", "dbs"), { recursive: true });
    this.#inode = statSync(dir).ino;
  }

  get(name: string): ReplicatedDatabase | undefined {
    return this.#databases.get(name);
  }

  [Symbol.iterator](): IterableIterator<ReplicatedDatabase> {
    return this.#databases.values();
  }

  get count(): number {
    return this.#databases.size;
  }

  /** Positions by name, as nodes exchange them. */
  positions(): Record<string, string> {
    return Object.fromEntries([...this].map(({ name, position }) => [name, formatPosition(position)]));
  }

  stateDir(name: string): string {
    return join(this.dir, ".replication", "dbs", name);
  }

  /** Position of a logged deletion, if any. */
  deletedAt(name: string): Position | undefined {
    if (this.#databases.has(name)) return undefined;
    const known = this.#lastKnown(name);
    return known.kind === "deleted" ? known.at : undefined;
  }

  #lastKnown(name: string): Known {
    const known = this.#known.get(name) ?? lastKnown(this.stateDir(name));
    this.#known.set(name, known);
    return known;
  }

  /** Databases that exist but cannot be used now. They must not be replaced. */
  get unusable(): string[] {
    const names = [...this.problems].filter(([, { state }]) => OF_A_FILE.has(state)).map(([name]) => name);
    return [...new Set([...names, ...this.#openings.names()])].filter((name) => !this.#databases.has(name));
  }

  /** Waits until pending databases are open, but not for slow ones. */
  async settle(): Promise<ReplicatedDatabase[]> {
    const { clock } = this.#options;
    const until_ms = clock.monotonic() + REPLICATION_LIMITS.settle_ms;
    const opened: ReplicatedDatabase[] = [];
    while (this.#openings.size > 0 && clock.monotonic() < until_ms) {
      await new Promise<void>((done) => setImmediate(done));
      opened.push(...this.advance());
    }
    return opened;
  }

  /** On a replica, a corrupt database is moved aside for the primary's. */
  setDamagedAside(): void {
    for (const [name, { state, reason }] of Array.from(this.problems)) {
      if (state !== "damaged" || this.#databases.has(name)) continue;
      const kept_at = this.#moveAside(name, join(this.dir, name), NOWHERE);
      rmSync(this.stateDir(name), { recursive: true, force: true });
      this.problems.clear(name);
      this.#options.log(`${name}: ${reason}; it was moved to ${kept_at}, and the primary's takes its place`);
    }
  }

  /** Whether files may have been added or removed since the last call; regularly also without a change. */
  changed(): boolean {
    const now_ms = this.#options.clock.monotonic();
    const { mtimeMs, ino } = statSync(this.dir);
    if (ino !== this.#inode) throw new Error(`${this.dir} is another folder now: was its disk unmounted, or renamed?`);
    const anyway = now_ms - this.#looked_ms >= REPLICATION_LIMITS.discover_anyway_ms;
    if (mtimeMs === this.#mtime_ms && !anyway) return false;
    this.#mtime_ms = mtimeMs;
    this.#looked_ms = now_ms;
    return true;
  }

  /** Opens new databases locked, as time permits. Returns them. */
  discover(): ReplicatedDatabase[] {
    const present = new Set<string>();
    for (const entry of readdirSync(this.dir, { withFileTypes: true })) {
      if (!entry.isFile() || !isDatabaseName(entry.name)) continue;
      present.add(entry.name);
      this.#consider(entry.name);
    }
    this.problems.keepOnly(OF_A_FILE, present);
    this.#noteMissing(present);
    return this.advance();
  }

  #consider(name: string): void {
    if (this.#databases.has(name) || this.#openings.has(name) || !this.problems.due(name)) return;
    try {
      if (pageSizeOf(join(this.dir, name)) === undefined) return;
      if (this.#databases.size + this.#openings.size >= REPLICATION_LIMITS.databases) {
        throw new Error(`databases: ${REPLICATION_LIMITS.databases} are open`);
      }
      this.#openings.begin(name);
    } catch (error) {
      this.problems.failed(name, error);
    }
  }

  /** Databases of the last run that are neither here nor deleted. */
  #noteMissing(present: ReadonlySet<string>): void {
    const missing = new Set<string>();
    for (const name of readdirSync(join(this.dir, ".replication", "dbs"))) {
      if (present.has(name) || this.#databases.has(name) || !isDatabaseName(name)) continue;
      if (this.#lastKnown(name).kind !== "database") continue;
      missing.add(name);
      const reason = `${join(this.dir, name)} is not there, and was not deleted while a node ran; replicas keep theirs`;
      if (this.problems.get(name)?.state !== "missing") this.problems.set(name, "missing", reason);
    }
    this.problems.keepOnly(new Set(["missing"]), missing);
  }

  /** Continues opening for a while. Returns what is open by now. */
  advance(): ReplicatedDatabase[] {
    return this.#openings.advance().map((database) => this.#add(database));
  }

  #add(database: ReplicatedDatabase): ReplicatedDatabase {
    const { name, found_by, position, cut } = database;
    database.term = this.term;
    this.#databases.set(name, database);
    this.#watches.set(name, new OverwriteWatch(database.source.files));
    this.#known.delete(name);
    this.problems.clear(name);
    this.#options.onOpened?.(database);
    this.#options.log(`${name}: opened at ${formatPosition(position)} (${found_by}${cut ? `, ${cut} cut off` : ""})`);
    return database;
  }

  #adopt(name: string): ReplicatedDatabase {
    return this.#add(finish(this.#openings.steps(name)));
  }

  /** Closes a database with an error. It is reopened later; the others are not affected. */
  quarantine(name: string, error: unknown): void {
    const database = this.#databases.get(name);
    this.#forget(name);
    this.problems.failed(name, error);
    this.#abandon(database);
  }

  #abandon(database: ReplicatedDatabase | undefined): void {
    try {
      database?.abandon();
    } catch (failure) {
      // Its log could not be synced: the disk's content is unknown.
      this.#options.onFailure(failure);
    }
  }

  /** Databases whose file was deleted. Each gets one last transaction. Replaced ones are reopened. */
  findDropped(): Dropped[] {
    return Array.from(this.#databases.values()).flatMap((database) => {
      try {
        return this.#dropIfGone(database) ?? [];
      } catch (error) {
        // Not logged as deleted, on a full disk for example: replicas keep theirs.
        this.#forget(database.name);
        this.problems.failed(database.name, error);
        if (!database.closed) this.#abandon(database);
        return [];
      }
    });
  }

  #dropIfGone(database: ReplicatedDatabase): Dropped | undefined {
    const { name, path } = database;
    const file = identityAt(path);
    const same_file = database.isOwnFile(file);
    const own_wal = database.isOwnWal(identityAt(`${path}-wal`));
    const overwritten = same_file && own_wal && this.#isOverwritten(database);
    if (same_file && own_wal && !overwritten) return undefined;
    this.#forget(name);
    if (overwritten) this.#openings.overwritten(database);
    else if (same_file) this.#openings.healLog(database);
    else if (file !== undefined) this.#openings.replace(database);
    if (file !== undefined) return undefined;
    const info = database.drop();
    return { name, info, ltx: readDrop(database, info) };
  }

  #isOverwritten(database: ReplicatedDatabase): boolean {
    const watch = this.#watches.get(database.name);
    return watch !== undefined && (watch.changed() || database.hasForeignPage(watch.checkpointed));
  }

  /** On a replica: reopens databases whose WAL or file was modified or removed by others. Returns their names. */
  healTouched(): string[] {
    return [...this.#forgetRemoved(), ...this.#healDeletedLogs(), ...this.#healOverwritten()];
  }

  /** The primary's is fetched again; one that the primary does not have is not needed. */
  #forgetRemoved(): string[] {
    const found = [...this.#databases.values()].filter(({ path }) => !statSync(path, { throwIfNoEntry: false }));
    for (const database of found) {
      const { name, path } = database;
      this.#close(database);
      for (const end of ["-wal", "-shm", "-pos"]) rmSync(path + end, { force: true });
      rmSync(this.stateDir(name), { recursive: true, force: true });
      this.problems.clear(name);
      this.#options.log(`${name}: its file was removed here; a primary that has it sends it again`);
    }
    return found.map(({ name }) => name);
  }

  /** The modified file is read, differs from the primary's, and is replaced. */
  #healOverwritten(): string[] {
    const found = [...this.#databases.values()].filter((database) => this.#isOverwritten(database));
    for (const { name } of found) {
      this.quarantine(
        name,
        new Quarantined("replaced", "its file was written to past SQLite, as cp does; it is read anew"),
      );
      // The stored page checksums are not trusted.
      new PersistedState(this.stateDir(name)).setAside();
    }
    return found.map(({ name }) => name);
  }

  #healDeletedLogs(): string[] {
    const found = [...this.#databases.values()].filter(
      (database) =>
        database.isOwnFile(identityAt(database.path)) && !database.isOwnWal(identityAt(`${database.path}-wal`)),
    );
    for (const database of found) {
      this.#forget(database.name);
      this.#openings.healLog(database);
    }
    return found.map(({ name }) => name);
  }

  /** Applies a logged deletion of the primary. The database is moved aside; also returns where. */
  applyDrop(database: ReplicatedDatabase, ltx: Buffer, term: number): { info: TransactionInfo; kept_at: string } {
    const { name, path, position } = database;
    let kept_at = "";
    const info = database.applyDrop(ltx, term, () => {
      kept_at = this.#moveAside(name, path, position);
    });
    this.#forget(name);
    return { info, kept_at };
  }

  /** The same when the primary's log no longer includes it: it reports the deletion's position. */
  applyDeletion(database: ReplicatedDatabase, at: Position): string {
    const { name, path, position, page_size } = database;
    this.#close(database);
    const kept_at = this.#moveAside(name, path, position);
    rmSync(this.stateDir(name), { recursive: true, force: true });
    recordDeletion(this.stateDir(name), at, page_size);
    return kept_at;
  }

  /** Moves a file that is no database out of the way of one that shall have its name. Its history goes on. */
  makeRoom(name: string): string {
    this.problems.clear(name);
    return this.#moveAside(name, join(this.dir, name), NOWHERE);
  }

  #moveAside(name: string, path: string, position: Position): string {
    rmSync(join(this.dir, `${name}-pos`), { force: true });
    return this.aside.move(name, path, position);
  }

  /** Replaces the database by the snapshot. With another page size the old one is moved aside. */
  install(name: string, snapshot: ReceivedSnapshot): ReplicatedDatabase {
    const database = this.#databases.get(name);
    if (database && database.page_size === snapshot.page_size) {
      database.replace(receivedPages(snapshot), snapshot);
      return database;
    }
    if (database) {
      const { path, position } = database;
      this.#close(database);
      this.#moveAside(name, path, position);
    }
    createFromSnapshot(snapshot, join(this.dir, name), this.stateDir(name));
    return this.#adopt(name);
  }

  /** Closes it so that its files can be moved; the stored state is dropped. */
  #close(database: ReplicatedDatabase): void {
    this.#forget(database.name);
    database.abandon();
  }

  /** Reopens it from its files, when memory is not trusted. */
  reopen(name: string): ReplicatedDatabase {
    this.#databases.get(name)?.abandon();
    this.#forget(name);
    return this.#adopt(name);
  }

  /** Deletes old transactions, except those after `keepAfter`, within limits. */
  tidy(keepAfter: (name: string) => number): void {
    // A copy, because reopened ones are added again.
    for (const database of Array.from(this.#databases.values())) {
      const reasonable = database.log.bytes < REPLICATION_LIMITS.backup_backlog_bytes;
      try {
        database.tidy(reasonable ? keepAfter(database.name) : Number.POSITIVE_INFINITY);
      } catch (error) {
        if (error instanceof PositionMismatch) this.#options.log(error.message);
        // Reopened, it reports its true position.
        this.quarantine(database.name, error);
      }
    }
  }

  close(): void {
    this.#openings.close();
    for (const database of this.#databases.values()) {
      try {
        database.close();
      } catch (error) {
        // What could not be written is found at the next start; the others are still closed.
        this.#options.log(`${database.name}: closing: ${messageOf(error)}`);
        this.#abandon(database);
      }
    }
    this.#databases.clear();
  }

  #forget(name: string): void {
    this.#databases.delete(name);
    this.#watches.delete(name);
    this.#known.delete(name);
  }
}

/** The logged deletion; the database is closed by now. */
function readDrop({ log, name }: ReplicatedDatabase, info: TransactionInfo): Buffer {
  const ltx = log.recent(info.position.txid);
  if (!ltx) throw new Error(`the log of ${name} does not have the deletion it was just given`);
  return ltx;
}
