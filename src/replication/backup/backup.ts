/** Copies what the log gets into an object store, a little later than it happens, for as long as the node runs. */
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { writeAll } from "../database/kept.ts";
import { Snapshot } from "../database/snapshot.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader, decodeLtx, encodeLtx } from "../ltx/codec.ts";
import type { Page } from "../ltx/page-table.ts";
import type { Directory } from "../node/directory.ts";
import type { Position } from "../position.ts";
import { changesKey, databasePrefix, parseChanges, parseSnapshot, snapshotKey } from "./archive.ts";

/** Merges consecutive transactions into one file: of each page, the newest. */
export function mergeLtx(files: readonly Buffer[]): Buffer {
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
  log(message: string): void;
}

export class Backup {
  readonly #options: BackupOptions;
  /** Up to where each database is in the store; undefined: not known yet. */
  readonly #stored = new Map<string, Position>();

  constructor(options: BackupOptions) {
    this.#options = options;
  }

  /** The transaction up to which a database is stored; its log must be kept from there on. */
  storedTxid(name: string): number {
    return this.#stored.get(name)?.txid ?? 0;
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
    if (!this.#stored.has(name)) await this.#find(database);
    // What comes while this is stored is for the next time: few large objects are better than many small ones.
    const upto = database.log.durable;
    for (;;) {
      const stored = this.#stored.get(name);
      const follows = stored && database.checksumAt(stored.txid) === stored.checksum;
      if (!follows) return this.#storeSnapshot(database);
      if (stored.txid >= upto) return;
      await this.#storeChanges(database, stored.txid + 1);
    }
  }

  /** What the store has of the history this database is in. */
  async #find(database: ReplicatedDatabase): Promise<void> {
    const objects = await this.#options.store.list(databasePrefix(database.name));
    const positions = objects.map(({ key }) => (parseChanges(key) ?? parseSnapshot(key))?.position);
    const known = positions
      .filter((position) => position !== undefined)
      .filter(({ txid, checksum }) => database.checksumAt(txid) === checksum)
      .sort((a, b) => b.txid - a.txid);
    if (known[0]) this.#stored.set(database.name, known[0]);
  }

  async #storeChanges(database: ReplicatedDatabase, first: number): Promise<void> {
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
    this.#stored.set(database.name, position);
  }

  async #storeSnapshot(database: ReplicatedDatabase): Promise<void> {
    const snapshot = Snapshot.take(database);
    if (!snapshot) return;
    try {
      await this.#put(snapshotKey(database.name, snapshot.position), snapshot.ltx("compress"));
      this.#stored.set(database.name, snapshot.position);
    } finally {
      snapshot.close();
    }
  }

  async #put(key: string, parts: Iterable<Buffer>): Promise<void> {
    const path = join(this.#options.scratch, "backup.ltx");
    const fd = openSync(path, "w", 0o600);
    try {
      for (const part of parts) writeAll(fd, part);
    } finally {
      closeSync(fd);
    }
    await this.#options.store.put(key, { file: path });
    rmSync(path, { force: true });
  }
}
