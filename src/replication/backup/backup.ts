/**
 * Copies what the log gets into an object store, a little later than it happens, for as long as the node runs. Now and
 * then a snapshot begins a new chain of changes, and what only older moments need goes.
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
    // What was cut off is gone, even if a later transaction grows the database again.
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
  /** Where files are made before they are stored. */
  scratch: string;
  /** Time range a restore can go. */
  keep_ms?: number;
  log(message: string): void;
}

/** What is in the store of the history a database is in. */
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
  /** By database; none: not known yet, or nothing that fits. */
  readonly #stored = new Map<string, Stored>();
  /** Databases that have been looked for in the store. */
  readonly #looked = new Set<string>();

  constructor(options: BackupOptions) {
    this.#options = options;
  }

  /** The transaction up to which a database is stored; its log must be kept from there on. */
  storedTxid(name: string): number {
    return this.#stored.get(name)?.position.txid ?? 0;
  }

  /** Stores what is new. A store that fails is asked again the next time; nothing is lost meanwhile but time. */
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
    // What comes while this is stored is for the next time: few large objects are better than many small ones.
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

  /** What the store has of the history this database is in. */
  async #find(database: ReplicatedDatabase): Promise<void> {
    const { name } = database;
    const archive = await this.#archive(name);
    const positions = [...archive.snapshots, ...archive.changes].map(({ position }) => position);
    const [newest] = positions
      .filter(({ txid, checksum }) => database.checksumAt(txid) === checksum)
      .sort((a, b) => b.txid - a.txid);
    this.#looked.add(name);
    // Beside a history that went further and was dropped, this one begins with a snapshot: by the time it was taken a
    // restore then knows which of the two was true at a moment.
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

  /** When a snapshot was taken; one that is gone or damaged is taken for the oldest of all. */
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
      // A deletion, and what comes after it, are not merged with what was before.
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

  /** Each new snapshot lets older ones go. What could not be deleted is tried again with the next. */
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
        // A turn of the loop after each part: a large database must not keep the node from its other work.
        await new Promise<void>((done) => setImmediate(done));
      }
    } finally {
      closeSync(fd);
    }
    await this.#options.store.put(key, { file: path });
    rmSync(path, { force: true });
  }
}
