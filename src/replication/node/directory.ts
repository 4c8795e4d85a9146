/**
 * The databases of a node: the files in its directory that are SQLite databases, opened once each. What the node
 * keeps for itself is in the folder `.replication` beside them.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { ReplicatedDatabase } from "../database/database.ts";
import { createFromSnapshot, type ReceivedSnapshot, Snapshot, snapshotPages } from "../database/snapshot.ts";
import { type DatabaseOptions, PositionMismatch, type TransactionInfo } from "../database/state.ts";
import { syncDirectory, writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition } from "../position.ts";

const MAGIC = "SQLite format 3\0";
/** Files beside a database that belong to it. */
const COMPANIONS = /-(wal|shm|journal|pos|lock)$|\.incoming$/;
const NAME_CHARS = 200;

export interface DirectoryOptions
  extends Pick<DatabaseOptions, "node_id" | "clock" | "onFailure" | "sizes" | "checkpointer" | "step"> {
  dir: string;
  onTransactions(name: string, infos: readonly TransactionInfo[]): void;
  log(message: string): void;
}

export interface Dropped {
  name: string;
  info: TransactionInfo;
  ltx: Buffer;
}

export class Directory {
  readonly dir: string;
  readonly #options: DirectoryOptions;
  readonly #databases = new Map<string, ReplicatedDatabase>();
  readonly #inodes = new Map<string, number>();
  /** Databases that could not be opened, with the reason, so that each is named once. */
  readonly refused = new Map<string, string>();
  term = 0;
  #mtime_ms = 0;
  #looked_ms = 0;

  constructor(options: DirectoryOptions) {
    this.dir = options.dir;
    this.#options = options;
    mkdirSync(join(this.dir, ".replication", "dbs"), { recursive: true });
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

  /** Where each database stands, by name, as nodes tell each other. */
  positions(): Record<string, string> {
    return Object.fromEntries([...this].map(({ name, position }) => [name, formatPosition(position)]));
  }

  stateDir(name: string): string {
    return join(this.dir, ".replication", "dbs", name);
  }

  /** True when files may have been added or removed since it was last asked, and now and then anyway. */
  changed(): boolean {
    const now_ms = this.#options.clock.monotonic();
    const { mtimeMs } = statSync(this.dir);
    const anyway = now_ms - this.#looked_ms >= REPLICATION_LIMITS.discover_anyway_ms;
    if (mtimeMs === this.#mtime_ms && !anyway) return false;
    this.#mtime_ms = mtimeMs;
    this.#looked_ms = now_ms;
    return true;
  }

  /** Opens, held, what is new in the directory. Returns what was opened. */
  discover(): ReplicatedDatabase[] {
    const opened: ReplicatedDatabase[] = [];
    for (const entry of readdirSync(this.dir, { withFileTypes: true })) {
      const { name } = entry;
      if (!entry.isFile() || this.#databases.has(name) || !isDatabaseName(name)) continue;
      const database = this.#open(name);
      if (database) opened.push(database);
    }
    return opened;
  }

  #open(name: string): ReplicatedDatabase | undefined {
    const path = join(this.dir, name);
    if (this.#databases.size >= REPLICATION_LIMITS.databases) {
      this.#refuse(name, `databases: ${REPLICATION_LIMITS.databases} are open`);
      return undefined;
    }
    try {
      if (!isDatabaseFile(path)) return undefined;
      return this.#adopt(name);
    } catch (error) {
      this.#refuse(name, messageOf(error));
      return undefined;
    }
  }

  #adopt(name: string): ReplicatedDatabase {
    const { node_id, clock, onFailure, onTransactions, sizes, checkpointer, step } = this.#options;
    const path = join(this.dir, name);
    const database = new ReplicatedDatabase({
      name,
      path,
      dir: this.stateDir(name),
      node_id,
      clock,
      onFailure,
      onTransactions: (infos) => onTransactions(name, infos),
      ...(sizes === undefined ? {} : { sizes }),
      ...(checkpointer === undefined ? {} : { checkpointer }),
      ...(step === undefined ? {} : { step }),
    });
    database.term = this.term;
    this.#databases.set(name, database);
    this.#inodes.set(name, statSync(path).ino);
    this.refused.delete(name);
    const { found_by, position, cut } = database;
    this.#options.log(`${name}: opened at ${formatPosition(position)} (${found_by}${cut ? `, ${cut} cut off` : ""})`);
    return database;
  }

  #refuse(name: string, reason: string): void {
    if (this.refused.get(name) !== reason) this.#options.log(`${name}: not opened: ${reason}`);
    this.refused.set(name, reason);
  }

  /** Databases whose file an application has deleted or replaced. Each becomes one last transaction. */
  findDropped(): Dropped[] {
    const dropped: Dropped[] = [];
    for (const database of this.#databases.values()) {
      const { name, path } = database;
      const now = statSync(path, { throwIfNoEntry: false });
      if (now?.ino === this.#inodes.get(name)) continue;
      const info = database.drop(now !== undefined);
      this.#forget(name);
      dropped.push({ name, info, ltx: readDrop(database, info) });
    }
    return dropped;
  }

  /** Applies the primary's word that a database is gone. */
  applyDrop(database: ReplicatedDatabase, ltx: Buffer, term: number): TransactionInfo {
    const info = database.applyDrop(ltx, term);
    this.#forget(database.name);
    return info;
  }

  /** Makes the database what the snapshot says, whatever it was. */
  install(name: string, snapshot: ReceivedSnapshot): ReplicatedDatabase {
    const database = this.#databases.get(name);
    if (database && database.page_size === snapshot.header.page_size) {
      const { table, position, header } = snapshot;
      database.replace(snapshotPages(snapshot), table, position, header.timestamp_ms);
      return database;
    }
    if (database) this.remove(name);
    createFromSnapshot(snapshot, join(this.dir, name), this.stateDir(name));
    return this.#adopt(name);
  }

  /** Closes a database and removes its files, and what is known about it. */
  remove(name: string): void {
    const database = this.#databases.get(name);
    database?.abandon();
    this.#forget(name);
    for (const end of ["", "-wal", "-shm", "-pos"]) rmSync(join(this.dir, `${name}${end}`), { force: true });
    rmSync(this.stateDir(name), { recursive: true, force: true });
  }

  /** Opens it again from its files, when what is in memory is not to be trusted any more. */
  reopen(name: string): ReplicatedDatabase {
    this.#databases.get(name)?.abandon();
    this.#forget(name);
    return this.#adopt(name);
  }

  /** Old transactions go, unless somebody still needs those after `keepAfter`, within reason. */
  tidy(keepAfter: (name: string) => number): void {
    // A copy: one that is opened again comes anew.
    for (const database of Array.from(this.#databases.values())) {
      const reasonable = database.log.bytes < REPLICATION_LIMITS.backup_backlog_bytes;
      try {
        database.tidy(reasonable ? keepAfter(database.name) : Number.POSITIVE_INFINITY);
      } catch (error) {
        // Opened again, it says truly where it stands.
        if (!(error instanceof PositionMismatch)) throw error;
        this.#options.log(error.message);
        this.reopen(database.name);
      }
    }
  }

  /** Copies a database to where nobody overwrites it. Returns the path. */
  keepAside(database: ReplicatedDatabase): string {
    const folder = join(this.dir, ".replication", "aside");
    mkdirSync(folder, { recursive: true });
    const { txid, checksum } = database.position;
    const path = join(folder, `${database.name}-${txid}-${checksum.toString(16)}.db`);
    const snapshot = Snapshot.take(database);
    if (!snapshot) throw new Error(`${database.name} is being written to`);
    const fd = openSync(path, "w", 0o600);
    try {
      for (const bytes of snapshot.file()) writeAll(fd, bytes);
      // What is here is overwritten next, and this is then the only copy.
      fsyncSync(fd);
    } finally {
      closeSync(fd);
      snapshot.close();
    }
    syncDirectory(folder);
    this.#limitAside(folder, database.name);
    return path;
  }

  close(): void {
    for (const database of this.#databases.values()) database.close();
    this.#databases.clear();
  }

  #forget(name: string): void {
    this.#databases.delete(name);
    this.#inodes.delete(name);
  }

  #limitAside(folder: string, name: string): void {
    // What follows the name is looked at, too: copies of `a-1` are none of `a`.
    const copies = readdirSync(folder)
      .filter((file) => file.startsWith(`${name}-`) && /^\d+-[0-9a-f]+\.db$/.test(file.slice(name.length + 1)))
      .map((file) => ({ path: join(folder, file), at_ms: statSync(join(folder, file)).mtimeMs }))
      .sort((a, b) => b.at_ms - a.at_ms);
    for (const { path } of copies.slice(REPLICATION_LIMITS.copies_aside)) {
      this.#options.log(`${path}: deleted, ${REPLICATION_LIMITS.copies_aside} newer copies are kept`);
      rmSync(path);
    }
  }
}

/** The deletion as it was logged; the database is closed by now. */
function readDrop({ log, name }: ReplicatedDatabase, info: TransactionInfo): Buffer {
  const ltx = log.recent(info.position.txid);
  if (!ltx) throw new Error(`the log of ${name} does not have the deletion it was just given`);
  return ltx;
}

export function isDatabaseName(name: string): boolean {
  return name.length <= NAME_CHARS && /^[^./\\\0][^/\\\0]*$/.test(name) && !COMPANIONS.test(name);
}

/** Looks before anything of SQLite has the file open; afterwards a descriptor must not be closed any more. */
function isDatabaseFile(path: string): boolean {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(MAGIC.length);
    return readSync(fd, bytes, 0, MAGIC.length, 0) === MAGIC.length && bytes.toString("latin1") === MAGIC;
  } finally {
    closeSync(fd);
  }
}
