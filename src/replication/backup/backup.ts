/**
 * Uploads the transaction log to an object store, with a small delay, for as long as the node runs. At intervals a
 * snapshot begins a new chain of changes, and objects past the retention are deleted.
 */
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { Snapshot } from "../database/snapshot.ts";
import { writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader, decodeLtx, encodeLtx, LTX_HEADER_BYTES } from "../ltx/codec.ts";
import type { Page } from "../ltx/page-table.ts";
import type { Directory } from "../node/directory.ts";
import type { Position } from "../position.ts";
import { type Archive, archiveIn, changesKey, databasePrefix, snapshotKey } from "./archive.ts";
import { superfluous, type TimedSnapshot } from "./prune.ts";

/** Merges consecutive transactions into one file: of each page, the newest. */
function mergeLtx(files: readonly Buffer[]): Buffer {
  const all = files.map((file) => decodeLtx(file));
  const [first, last] = [all[0], all.at(-1)];
  if (!first || !last) throw new Error("nothing to merge");
  const pages = new Map<number, Page>();
  for (const { header, pages: changed } of all) {
    for (const page of changed) pages.set(page.number, page);
    // Truncated pages are dropped, even if a later transaction grows the database again.
    for (const number of pages.keys()) if (number > header.commit) pages.delete(number);
  }
  const { min_txid, pre_checksum } = first.header;
  const sorted = [...pages.values()].sort((a, b) => a.number - b.number);
  return encodeLtx({ ...last.header, min_txid, pre_checksum }, sorted, last.post_checksum, "compress");
}

export interface BackupOptions {
  directory: Directory;
  store: ObjectStore;
  clock: Clock;
  /** Directory for temporary files. */
  scratch: string;
  /** Time range a restore can go. */
  keep_ms?: number;
  log(message: string): void;
}

/** What the store has of the database's current history. */
interface Stored {
  /** Up to where. */
  position: Position;
  /** When the snapshot was taken that this follows from. */
  snapshot_ms: number;
  /** Objects of changes since. */
  changes: number;
}

export class Backup {
  readonly #options: BackupOptions;
  /** By database; absent when unknown, or when nothing matches. */
  readonly #stored = new Map<string, Stored>();
  /** Databases already looked up in the store. */
  readonly #looked = new Set<string>();

  constructor(options: BackupOptions) {
    this.#options = options;
  }

  /** The last stored transaction of a database; its log must be retained from there on. */
  storedTxid(name: string): number {
    return this.#stored.get(name)?.position.txid ?? 0;
  }

  /** Uploads new transactions. A failing store is retried the next time without loss. */
  async once(): Promise<void> {
    for (const database of this.#options.directory) {
      try {
        await this.#store(database);
      } catch (error) {
        this.#options.log(`backup of ${database.name}: ${messageOf(error)}`);
      }
    }
  }

  async #store(database: ReplicatedDatabase): Promise<void> {
    const { name } = database;
    if (!this.#looked.has(name)) await this.#find(database);
    // Transactions that arrive during the upload wait for the next one: few large objects are better than many small
    // ones.
    const upto = database.log.durable;
    for (;;) {
      const stored = this.#stored.get(name);
      const follows = stored && database.checksumAt(stored.position.txid) === stored.position.checksum;
      if (!follows) return this.#storeSnapshot(database);
      if (stored.position.txid >= upto) return this.#snapshotDue(stored) ? this.#storeSnapshot(database) : undefined;
      await this.#storeChanges(database, stored);
    }
  }

  #snapshotDue({ snapshot_ms, changes }: Stored): boolean {
    const { backup_snapshot_ms, backup_snapshot_changes } = REPLICATION_LIMITS;
    const old = this.#options.clock.now() - snapshot_ms >= backup_snapshot_ms;
    return (old && changes > 0) || changes >= backup_snapshot_changes;
  }

  /** Finds what the store has of this database's history. */
  async #find(database: ReplicatedDatabase): Promise<void> {
    const { name } = database;
    const archive = await this.#archive(name);
    const positions = [...archive.snapshots, ...archive.changes].map(({ position }) => position);
    const [newest] = positions
      .filter(({ txid, checksum }) => database.checksumAt(txid) === checksum)
      .sort((a, b) => b.txid - a.txid);
    this.#looked.add(name);
    // After a diverged history this one begins with a snapshot, whose time shows a restore which history was valid at a
    // moment.
    if (!newest || positions.some(({ txid }) => txid > newest.txid)) return;
    const before = archive.snapshots.filter(({ position }) => position.txid <= newest.txid);
    const [snapshot] = before.sort((a, b) => b.position.txid - a.position.txid);
    if (!snapshot) return;
    const changes = archive.changes.filter(({ first }) => first > snapshot.position.txid).length;
    this.#stored.set(name, { position: newest, snapshot_ms: await this.#takenAt(snapshot.key), changes });
  }

  async #archive(name: string): Promise<Archive> {
    return archiveIn((await this.#options.store.list(databasePrefix(name))).map(({ key }) => key));
  }

  /** Time of a snapshot; a missing or damaged one counts as the oldest. */
  async #takenAt(key: string): Promise<number> {
    const bytes = await this.#options.store.get(key, { offset: 0, length: LTX_HEADER_BYTES });
    try {
      return bytes ? decodeHeader(bytes).timestamp_ms : 0;
    } catch {
      return 0;
    }
  }

  async #storeChanges(database: ReplicatedDatabase, stored: Stored): Promise<void> {
    const first = stored.position.txid + 1;
    const files: Buffer[] = [];
    let bytes = 0;
    for (let txid = first; txid <= database.log.durable && bytes < REPLICATION_LIMITS.backup_bytes; txid++) {
      const ltx = database.log.read(txid);
      if (!ltx) break;
      // A deletion and what follows are not merged with what was before.
      if (decodeHeader(ltx).commit === 0 && files.length > 0) break;
      files.push(ltx);
      bytes += ltx.length;
    }
    const last = first + files.length - 1;
    const position = { txid: last, checksum: database.checksumAt(last) ?? 0n };
    await this.#put(changesKey(database.name, first, position), [mergeLtx(files)]);
    this.#stored.set(database.name, { ...stored, position, changes: stored.changes + 1 });
  }

  async #storeSnapshot(database: ReplicatedDatabase): Promise<void> {
    const { name } = database;
    const snapshot_ms = this.#options.clock.now();
    const snapshot = Snapshot.take(database);
    if (!snapshot) return;
    const { position } = snapshot;
    try {
      await this.#put(snapshotKey(name, position), snapshot.ltx("compress", snapshot_ms));
    } finally {
      snapshot.close();
    }
    this.#stored.set(name, { position, snapshot_ms, changes: 0 });
    await this.#prune(name);
  }

  /** Each new snapshot expires older ones. Failed deletes are retried with the next. */
  async #prune(name: string): Promise<void> {
    const { store, clock, keep_ms = REPLICATION_LIMITS.backup_keep_ms, log } = this.#options;
    const { snapshots, changes } = await this.#archive(name);
    if (snapshots.length < 2) return;
    const timed: TimedSnapshot[] = [];
    for (const one of snapshots) timed.push({ ...one, taken_ms: await this.#takenAt(one.key) });
    const keys = superfluous(timed, changes, clock.now() - keep_ms);
    if (keys.length === 0) return;
    await store.delete(keys);
    log(`backup of ${name}: ${keys.length} objects were deleted, which only older moments needed`);
  }

  async #put(key: string, parts: Iterable<Buffer>): Promise<void> {
    const path = join(this.#options.scratch, "backup.ltx");
    const fd = openSync(path, "w", 0o600);
    try {
      for (const part of parts) {
        writeAll(fd, part);
        // Yields to the event loop after each part, so that a large database does not block the node.
        await new Promise<void>((done) => setImmediate(done));
      }
    } finally {
      closeSync(fd);
    }
    await this.#options.store.put(key, { file: path });
    rmSync(path, { force: true });
  }
}
