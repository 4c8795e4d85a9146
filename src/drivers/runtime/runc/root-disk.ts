/**
 * The disk under a machine's root file system: a sparse file with ext4 in it, so that it has a size, statistics, and
 * goes away as one file. Formatting takes longer than everything else about a disk, so it is done once; a new disk is
 * a copy of the few blocks that formatting wrote.
 */
import { execFile } from "node:child_process";
import { closeSync, fstatSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { seekData } from "../../linux/calls.ts";

const run = promisify(execFile);

interface Template {
  size: number;
  pieces: { at: number; bytes: Buffer }[];
}

export class RootDisks {
  readonly #dir: string;
  readonly #size: number;
  #template: Promise<Template> | undefined;

  constructor(dir: string, size: number) {
    this.#dir = dir;
    this.#size = size;
  }

  /** Formats the pattern of all disks, if that has not been done. */
  async prepare(): Promise<Template> {
    this.#template ??= this.#format();
    this.#template.catch(() => {
      this.#template = undefined;
    });
    return await this.#template;
  }

  /** Makes an empty disk at `file`; one that is there is overwritten. */
  async make(file: string): Promise<void> {
    const { size, pieces } = await this.prepare();
    rmSync(file, { force: true });
    await using disk = await open(file, "wx", 0o600);
    await disk.truncate(size);
    for (const { at, bytes } of pieces) writeSync(disk.fd, bytes, 0, bytes.length, at);
  }

  async #format(): Promise<Template> {
    const file = join(this.#dir, "template.ext4");
    rmSync(file, { force: true });
    const fd = openSync(file, "w+", 0o600);
    try {
      const size = String(Math.floor(this.#size / 1024));
      const lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
      await run("mkfs.ext4", ["-q", "-F", "-m", "0", "-J", "size=16", "-E", lazy, file, `${size}k`]);
      return { size: fstatSync(fd).size, pieces: [...written(fd)] };
    } finally {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }
}

/** What of a sparse file is not a hole. */
function* written(fd: number): Generator<{ at: number; bytes: Buffer }> {
  for (let end = 0; ; ) {
    const at = seekData(fd, end, "data");
    if (at === undefined) return;
    end = seekData(fd, at, "hole") ?? fstatSync(fd).size;
    const bytes = Buffer.alloc(end - at);
    readSync(fd, bytes, 0, bytes.length, at);
    yield { at, bytes };
  }
}
