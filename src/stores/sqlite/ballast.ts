import { randomBytes } from "node:crypto";
import { closeSync, fstatSync, ftruncateSync, openSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { LIMITS } from "#core/limits.ts";

/** At most this share of what is free goes into the ballast: a small disk keeps its room. */
const SHARE = 1 / 16;
const CHUNK = 1 << 20;
const FILL_LATER_MS = 10_000;

/**
 * Room that is kept back on the disk, so that on a full one something can still be deleted: a write that
 * frees space needs some itself, for the log.
 */
export class Ballast {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** At once where room is scarce; where there is plenty it can wait until the start is over. */
  fillSoon(): void {
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    if (bavail * bsize * SHARE < 4 * LIMITS.ballast_bytes) this.fill();
    else setTimeout(() => this.fill(), FILL_LATER_MS).unref();
  }

  /** What is kept back now. */
  get bytes(): number {
    return this.#opened((fd) => fstatSync(fd).size) ?? 0;
  }

  /** Takes what it may; on a disk without room that is little or nothing, and no error. */
  fill(): void {
    this.#opened((fd) => {
      const { bavail, bsize } = statfsSync(dirname(this.#file));
      let size = fstatSync(fd).size;
      const goal = Math.min(LIMITS.ballast_bytes, size + Math.floor(bavail * bsize * SHARE));
      // Noise, because some file systems keep zeros without taking room for them.
      const noise = randomBytes(CHUNK);
      while (size < goal) size += writeSync(fd, noise, 0, Math.min(CHUNK, goal - size), size);
    });
  }

  /** Runs `work` with the room it kept, and takes back what is left of it. */
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

  /** A disk that has no room for the ballast, or none for the file's name, is no reason to fail. */
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
