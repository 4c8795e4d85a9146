/**
 * A node's stored state about a database besides its log, so that a restart need not read the database:
 *
 *   pages       a line of JSON (position, place in the WAL), then the checksum of every page, 8 bytes each
 *   mark.json   "this file, with these times, without its log, was at this position"
 *   replaced    the transaction at which another file took the database's place, if the log does not have it
 *
 * All are hints. Anything that does not fit together is ignored, and the database is read instead.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { replaceFile } from "../durable.ts";
import { PageTable } from "../ltx/page-table.ts";
import { formatPosition, type Position, parsePosition } from "../position.ts";
import type { FileIdentities, FileStamp } from "../wal/files.ts";
import type { WalCursor } from "../wal/frames.ts";

export interface PersistedTable {
  position: Position;
  /** WAL cursor of the position, if it is in the WAL. */
  cursor: WalCursor | undefined;
  table: PageTable;
  /** Identities of the files; unknown when they did not exist yet. */
  files: FileIdentities | undefined;
}

/** Maximum length of the first line of the checksum file. */
const LINE_BYTES = 4096;

export interface Mark {
  position: Position;
  stamp: FileStamp;
  /** The file was just made of a snapshot: this is for the first time that it is opened. */
  once?: boolean;
}

export class PersistedState {
  readonly #pages: string;
  readonly #mark: string;
  readonly #replacing: string;
  readonly #replaced: string;

  constructor(dir: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#pages = join(dir, "pages");
    this.#mark = join(dir, "mark.json");
    this.#replacing = join(dir, "replacing");
    this.#replaced = join(dir, "replaced");
  }

  saveTable({ position, cursor, table, files }: PersistedTable): void {
    const sums = table.copy();
    const bytes = Buffer.from(sums.buffer, 0, sums.byteLength);
    const line = JSON.stringify({
      version: 1,
      position: formatPosition(position),
      page_size: table.page_size,
      cursor,
      files,
      crc32: crc32(bytes),
    });
    replaceFile(this.#pages, [`${line}\n`, bytes], true);
  }

  loadTable(): PersistedTable | undefined {
    try {
      const file = readFileSync(this.#pages);
      const end = file.indexOf("\n");
      const line = JSON.parse(file.toString("utf8", 0, end)) as Record<string, unknown>;
      const bytes = file.subarray(end + 1);
      const position = parsePosition(String(line["position"]));
      if (!position || line["version"] !== 1 || line["crc32"] !== crc32(bytes)) return undefined;
      const sums = new Uint32Array(bytes.length / 4);
      Buffer.from(sums.buffer).set(bytes);
      const table = new PageTable(Number(line["page_size"]), sums);
      if (table.checksum !== position.checksum) return undefined;
      const files = line["files"] as FileIdentities | undefined;
      return { position, table, files, cursor: line["cursor"] as WalCursor | undefined };
    } catch {
      return undefined;
    }
  }

  /** Identities of the last opened files, without loading everything. */
  loadFiles(): FileIdentities | undefined {
    try {
      const fd = openSync(this.#pages, "r");
      try {
        const bytes = Buffer.alloc(LINE_BYTES);
        const text = bytes.toString("utf8", 0, readSync(fd, bytes, 0, LINE_BYTES, 0));
        const line = JSON.parse(text.slice(0, text.indexOf("\n"))) as Record<string, unknown>;
        return line["files"] as FileIdentities | undefined;
      } finally {
        closeSync(fd);
      }
    } catch {
      return undefined;
    }
  }

  saveMark({ position, ...mark }: Mark): void {
    replaceFile(this.#mark, [JSON.stringify({ position: formatPosition(position), ...mark })], false);
  }

  loadMark(): Mark | undefined {
    try {
      const mark = JSON.parse(readFileSync(this.#mark, "utf8")) as Omit<Mark, "position"> & { position: string };
      const position = parsePosition(mark.position);
      return position && { ...mark, position };
    } catch {
      return undefined;
    }
  }

  /** It is open. From here on what is in its WAL counts, which such a mark knows nothing of. */
  forgetMarkOfSnapshot(): void {
    if (this.loadMark()?.once) this.forgetMark();
  }

  forgetMark(): void {
    rmSync(this.#mark, { force: true });
  }

  /** The log does not lead to this transaction: earlier ones are not known to be part of the database. */
  noteReplacement(txid: number): void {
    if (txid > 0) replaceFile(this.#replaced, [String(txid)], true);
  }

  /** See `noteReplacement`; 0 when there was none. */
  get replaced_at(): number {
    try {
      return Number(readFileSync(this.#replaced, "utf8")) || 0;
    } catch {
      return 0;
    }
  }

  /** A snapshot is about to replace the database: until that is done, the content is unknown. */
  beginReplacing(): void {
    // Durable before anything is overwritten, so that an unknown state is not taken for one of our transactions.
    replaceFile(this.#replacing, [], true);
    rmSync(this.#pages, { force: true });
    rmSync(this.#mark, { force: true });
  }

  endReplacing(): void {
    rmSync(this.#replacing, { force: true });
  }

  get replacing(): boolean {
    return existsSync(this.#replacing);
  }

  /** Moves inconsistent files aside for inspection. */
  setAside(): void {
    for (const path of [this.#pages, this.#mark]) {
      try {
        renameSync(path, `${path}.damaged`);
      } catch {
        // It did not exist.
      }
    }
  }
}
