/** Receives snapshots, each into a file of its own until it is complete. The part of an interrupted one is stored. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { blockOf, type PartialSnapshot, readPartial } from "../database/partial-snapshot.ts";
import { type ReceivedSnapshot, SnapshotFile, type SnapshotHead } from "../database/received-snapshot.ts";
import { PositionMismatch } from "../database/state.ts";
import type { PageTable } from "../ltx/page-table.ts";
import { parsePosition } from "../position.ts";
import { isPageSize } from "../wal/database-header.ts";
import { isDatabaseName } from "./database-name.ts";
import { readSnapshotPart } from "./wire.ts";

const INCOMING = ".incoming";

export class Incoming {
  readonly #dir: string;
  #receiving: { name: string; file: SnapshotFile } | undefined;
  /** What is here of snapshots that broke off, until the next one begins. */
  readonly #partial = new Map<string, PageTable>();

  constructor(dir: string) {
    this.#dir = join(dir, ".replication");
  }

  /** The database that is being received. */
  get name(): string | undefined {
    return this.#receiving?.name;
  }

  /** Interrupted snapshots, also of an earlier process. */
  partials(): Map<string, PartialSnapshot> {
    const partials = new Map<string, PartialSnapshot>();
    for (const file of readdirSync(this.#dir)) {
      const name = file.endsWith(INCOMING) ? file.slice(0, -INCOMING.length) : "";
      if (!isDatabaseName(name) || name === this.name) continue;
      const table = readPartial(this.#path(name));
      if (!table) {
        this.forget(name);
        continue;
      }
      this.#partial.set(name, table);
      partials.set(name, { page_size: table.page_size, blocks: table.blockSums() });
    }
    return partials;
  }

  /** `kept`: blocks that are here and are not sent again. */
  begin(name: string, head: SnapshotHead, kept: ReadonlySet<number> = new Set()): void {
    this.interrupt();
    const known = kept.size > 0 ? this.#partial.get(name) : undefined;
    this.#partial.delete(name);
    known?.keepOnly((page) => kept.has(blockOf(page)));
    this.#receiving = { name, file: new SnapshotFile(this.#path(name), head, known) };
  }

  /** Throws `PositionMismatch` when it is not part of what was begun. */
  write(part: Buffer): void {
    this.#receiving?.file.write(readSnapshotPart(part));
  }

  /** Throws `PositionMismatch` when it is not whole. */
  verify(): ReceivedSnapshot | undefined {
    return this.#receiving?.file.verify();
  }

  /** The connection broke: what has come stays for the next one. */
  interrupt(): void {
    const receiving = this.#receiving;
    this.#receiving = undefined;
    receiving?.file.close();
  }

  /** Drops the snapshot being received. */
  drop(): void {
    const { name } = this;
    this.interrupt();
    if (name !== undefined) this.forget(name);
  }

  /** What has come of a database is not needed any more. */
  forget(name: string): void {
    this.#partial.delete(name);
    rmSync(this.#path(name), { force: true });
  }

  #path(name: string): string {
    return join(this.#dir, `${name}${INCOMING}`);
  }
}

/**
 * What the primary says of a snapshot, and the blocks that it does not send. Throws `PositionMismatch` when that makes
 * no sense.
 */
export function readSnapshotHead(message: Record<string, unknown>): { head: SnapshotHead; kept: Set<number> } {
  const { page_size, pages, timestamp_ms, kept, replaced_at } = message;
  const position = parsePosition(String(message["position"]));
  if (!position || !isPageSize(page_size) || !Number.isSafeInteger(pages) || Number(pages) < 1) {
    throw new PositionMismatch("the primary sent a snapshot without position, page size or pages");
  }
  // An older primary does not say whether the database was replaced.
  const replaced = Number.isSafeInteger(replaced_at) ? Number(replaced_at) : 0;
  const head = { page_size, pages: Number(pages), position, timestamp_ms: Number(timestamp_ms), replaced_at: replaced };
  return { head, kept: new Set(Array.isArray(kept) ? kept.map(Number) : []) };
}
