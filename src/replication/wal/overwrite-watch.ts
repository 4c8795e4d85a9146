/**
 * Notices that somebody writes to a database file past SQLite, with `cp` for example. In WAL mode the file changes by
 * checkpoints alone, and a checkpoint shows in the index before it writes its first page (`attempted`) and after its last
 * (`copied`). So a file that has changed while neither moved was changed by somebody else.
 */
import { fstatSync } from "node:fs";
import type { DatabaseFiles } from "./files.ts";

export class OverwriteWatch {
  readonly #files: DatabaseFiles;
  /** The last moment without a running checkpoint, and the file then. */
  #seen: { place: string; file: string } | undefined;
  #place_before: string | undefined;
  /** Whether a checkpoint ran between the last two calls: then the file may have been written to as well. */
  checkpointed = false;

  constructor(files: DatabaseFiles) {
    this.#files = files;
    // The current content is known to the watcher.
    this.changed();
  }

  /** Whether the file was written to since the last call, other than by a checkpoint. */
  changed(): boolean {
    const before = this.#place();
    const file = this.#file();
    this.checkpointed = before !== undefined && before !== this.#place_before;
    this.#place_before = before ?? this.#place_before;
    // A checkpoint runs or began meanwhile: the file says nothing.
    if (before === undefined || before !== this.#place()) {
      this.#seen = undefined;
      return false;
    }
    const seen = this.#seen;
    this.#seen = { place: before, file };
    return seen?.place === before && seen.file !== file;
  }

  /** Checkpoint progress; undefined while one runs or was interrupted. */
  #place(): string | undefined {
    const header = this.#files.indexHeader();
    const { copied, attempted } = this.#files.checkpointed();
    return header && copied === attempted ? `${header.salt1} ${header.salt2} ${copied}` : undefined;
  }

  #file(): string {
    const { size, mtimeNs } = fstatSync(this.#files.database, { bigint: true });
    return `${size} ${mtimeNs}`;
  }
}
