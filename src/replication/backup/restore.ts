/** Makes a database file out of a backup, as it was at a moment or at a transaction. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ObjectStore } from "#core/objects.ts";
import { snapshotPages, verifySnapshot } from "../database/snapshot.ts";
import { decodeHeader, decodeLtx, LTX_HEADER_BYTES, type Ltx, type LtxHeader } from "../ltx/codec.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import type { Position } from "../position.ts";
import { type ArchivedChanges, type ArchivedSnapshot, archiveIn, databasePrefix } from "./archive.ts";

export interface RestoreOptions {
  store: ObjectStore;
  name: string;
  /** The target file, which must not exist. */
  to: string;
  /** Upper bound by the primary's wall clock. Without it and `txid`: the newest state. */
  at_ms?: number;
  txid?: number;
  /** Folder for temporary files; by default the system's. */
  scratch?: string;
}

export interface Restored {
  position: Position;
  timestamp_ms: number;
}

export class RestoreError extends Error {
  override readonly name = "RestoreError";
}

export async function restore(options: RestoreOptions): Promise<Restored> {
  const { to, name, store } = options;
  if (existsSync(to)) throw new RestoreError(`${to} is there already; restore to another name and move it`);
  const scratch = mkdtempSync(join(options.scratch ?? tmpdir(), "hangar-restore-"));
  const fresh = `${to}.incoming`;
  try {
    const { snapshots, changes } = archiveIn((await store.list(databasePrefix(name))).map(({ key }) => key));
    if (snapshots.length === 0) throw new RestoreError(`there is no backup of ${name}`);
    const restored = await build(options, await startOf(options, snapshots), changes, scratch, fresh);
    renameSync(fresh, to);
    return restored;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    rmSync(fresh, { force: true });
  }
}

/**
 * Chooses the latest snapshot that is early enough by time. Not by txid: more transactions may belong to a diverged
 * history.
 */
async function startOf(options: RestoreOptions, snapshots: readonly ArchivedSnapshot[]): Promise<string> {
  let [found, taken_ms] = ["", Number.NEGATIVE_INFINITY];
  for (const { key } of snapshots) {
    const bytes = await options.store.get(key, { offset: 0, length: LTX_HEADER_BYTES });
    const header = bytes && decodeHeader(bytes);
    if (!header || !early(options, header) || header.timestamp_ms < taken_ms) continue;
    [found, taken_ms] = [key, header.timestamp_ms];
  }
  if (found === "") throw new RestoreError(`the backup of ${options.name} does not go back so far`);
  return found;
}

/** Whether what the header describes is not later than requested. */
function early({ at_ms, txid }: RestoreOptions, header: LtxHeader): boolean {
  return (
    header.timestamp_ms <= (at_ms ?? Number.POSITIVE_INFINITY) && header.max_txid <= (txid ?? Number.POSITIVE_INFINITY)
  );
}

async function build(
  options: RestoreOptions,
  start: string,
  changes: ArchivedChanges[],
  scratch: string,
  fresh: string,
): Promise<Restored> {
  const file = join(scratch, "object.ltx");
  await options.store.getFile(start, file);
  const { header, table, position } = verifySnapshot(file);
  const fd = openSync(fresh, "w", 0o644);
  try {
    const target = new Target(fd, header.page_size, table);
    for (const batch of snapshotPages({ path: file })) target.write(batch);
    const restored = { position, timestamp_ms: header.timestamp_ms };
    return await replayChanges(options, changes, file, target, restored);
  } finally {
    closeSync(fd);
  }
}

/** Applies changes from position to position, while they are early enough. */
async function replayChanges(
  options: RestoreOptions,
  changes: ArchivedChanges[],
  file: string,
  target: Target,
  start: Restored,
): Promise<Restored> {
  let restored = start;
  for (;;) {
    const { position } = restored;
    const next = await findNext(options, changes, file, position);
    if (!next) break;
    const { header, post_checksum } = next;
    target.apply(next);
    restored = { position: { txid: header.max_txid, checksum: post_checksum }, timestamp_ms: header.timestamp_ms };
  }
  target.end();
  return restored;
}

/** Among changes after `position`, those that continue its checksum. Where two histories diverge, the later one won. */
async function findNext(
  options: RestoreOptions,
  changes: ArchivedChanges[],
  file: string,
  position: Position,
): Promise<Ltx | undefined> {
  let next: Ltx | undefined;
  for (const { key } of changes.filter(({ first }) => first === position.txid + 1)) {
    await options.store.getFile(key, file);
    const ltx = decodeLtx(readFileSync(file));
    const { pre_checksum, timestamp_ms } = ltx.header;
    if (pre_checksum !== position.checksum || !early(options, ltx.header)) continue;
    if (!next || timestamp_ms > next.header.timestamp_ms) next = ltx;
  }
  return next;
}

/** The file being restored, and its page checksums. */
class Target {
  readonly #fd: number;
  #page_size: number;
  #table: PageTable;

  constructor(fd: number, page_size: number, table: PageTable) {
    this.#fd = fd;
    this.#page_size = page_size;
    this.#table = table;
  }

  write(pages: readonly Page[]): void {
    for (const { number, data } of pages) {
      writeSync(this.#fd, data, 0, this.#page_size, (number - 1) * this.#page_size);
    }
  }

  apply({ header, pages, post_checksum }: Ltx): void {
    // The database was deleted and recreated with another page size.
    if (header.page_size !== this.#page_size) {
      this.#page_size = header.page_size;
      this.#table = new PageTable(header.page_size);
    }
    const change = this.#table.change(pages, header.commit);
    if (change.checksum !== post_checksum) throw new RestoreError("the changes do not lead to their checksum");
    this.#table.accept(change);
    this.write(pages);
  }

  end(): void {
    ftruncateSync(this.#fd, this.#table.count * this.#page_size);
    fsyncSync(this.#fd);
  }
}
