import { randomBytes } from "node:crypto";
import { closeSync, fstatSync, ftruncateSync, openSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { LIMITS } from "#core/limits.ts";

/** Maximum fraction of free space: a small disk keeps its space. */
const SHARE = 1 / 16;
const CHUNK = 1 << 20;
const FILL_LATER_MS = 10_000;

/**
 * Ballast: disk space reserved so that deletes still work on a full disk, because they need some themselves, for the
 * WAL.
 */
export class Ballast {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** At once where space is scarce, otherwise after the start. */
  fillSoon(): void {
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    if (bavail * bsize * SHARE < 4 * LIMITS.ballast_bytes) this.fill();
    else setTimeout(() => this.fill(), FILL_LATER_MS).unref();
  }

  /** Currently reserved bytes. */
  get bytes(): number {
    return this.#opened((fd) => fstatSync(fd).size) ?? 0;
  }

  /** Reserves what it can; less on a full disk, without an error. */
  fill(): void {
    this.#opened((fd) => {
      const { bavail, bsize } = statfsSync(dirname(this.#file));
      let size = fstatSync(fd).size;
      const goal = Math.min(LIMITS.ballast_bytes, size + Math.floor(bavail * bsize * SHARE));
      // Random data, because some file systems store zeros without allocating.
      const noise = randomBytes(CHUNK);
      while (size < goal) size += writeSync(fd, noise, 0, Math.min(CHUNK, goal - size), size);
    });
  }

  /** Runs `work` with the reserved space, then reserves the rest again. */
  spend<Result>(work: () => Result): Result {
    const size = this.#opened((fd) => {
      const { size: before } = fstatSync(fd);
      ftruncateSync(fd, 0);
      return before;
    });
    try {
      return work();
    } finally {
      this.#takeBack(size ?? 0);
    }
  }

  #takeBack(size: number): void {
    this.#opened((fd) => {
      const noise = randomBytes(CHUNK);
      for (let at = 0; at < size; ) at += writeSync(fd, noise, 0, Math.min(CHUNK, size - at), at);
    });
  }

  /** A disk without space for the ballast is no error. */
  #opened<Result>(work: (fd: number) => Result): Result | undefined {
    let fd: number | undefined;
    try {
      fd = openSync(this.#file, "a+", 0o600);
      return work(fd);
    } catch {
      return undefined;
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }
}
