/**
 * The disk under a machine's root file system: a sparse file with ext4 in it, so that it has a size limit, statistics,
 * and is deleted as one file. Formatting takes longest, so it is done once; a new disk is a copy of the few blocks that
 * formatting wrote.
 *
 * Mounting waits for the host's disk, long under load, so a few empty disks are mounted in advance, detached from the
 * directory tree: they end with our process, and their files are removed by the next.
 */
import {
  close,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "#core/clock.ts";
import { putMount, seekData } from "../../../linux/calls.ts";
import { deviceOf, mountLoop, openDisk } from "../../../linux/loop.ts";
import { program } from "../../../linux/program.ts";
import { RUNC_LIMITS } from "../limits.ts";

const REFILL_MS = 300;
/** On another thread, because closing unmounts. */
const closeLater = promisify(close);

interface Template {
  size: number;
  pieces: { at: number; bytes: Buffer }[];
}

/** A prepared disk. */
interface Ready {
  file: string;
  mount: number;
}

export class RootDisks {
  /** Directory of prepared disks. */
  readonly #dir: string;
  readonly #size: number;
  readonly #clock: Clock;
  #template: Promise<Template> | undefined;
  readonly #ready: Ready[] = [];
  #filling: Promise<void> | undefined;
  #made = 0;
  /** Between open and close. */
  #keeping = false;

  constructor(dir: string, size: number, clock: Clock) {
    this.#dir = dir;
    this.#size = size;
    this.#clock = clock;
  }

  /** Starts preparing disks. Those of an earlier process cannot be used. */
  open(): void {
    rmSync(this.#dir, { recursive: true, force: true });
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    this.#keeping = true;
    this.#fill();
  }

  /** Mounts the disk in `file` at `target`; a missing one is created, of `bytes` unless that is 0. */
  async mount(file: string, target: string, bytes = 0): Promise<void> {
    if (existsSync(file)) {
      await this.#free(file);
      return await mountLoop(file, target);
    }
    if (bytes > 0 && bytes !== this.#size) {
      await formatNew(file, bytes);
      return await mountLoop(file, target);
    }
    const ready = await this.#next();
    // Delayed, because the starting machine needs the host's disk.
    setTimeout(() => this.#fill(), REFILL_MS).unref();
    if (!ready) {
      await this.make(file);
      return await mountLoop(file, target);
    }
    try {
      renameSync(ready.file, file);
      putMount(ready.mount, target);
    } finally {
      closeSync(ready.mount);
    }
  }

  /** The first usable prepared disk. */
  async #next(): Promise<Ready | undefined> {
    for (let ready = this.#ready.shift(); ready; ready = this.#ready.shift()) {
      if (writable(ready.mount)) return ready;
      await closeLater(ready.mount);
      rmSync(ready.file, { force: true });
    }
    return undefined;
  }

  /**
   * Another process may have a copy of our mounts and so hold the disk: a starting machine does, briefly. A second
   * mount through another device would corrupt it.
   */
  async #free(file: string): Promise<void> {
    const end = this.#clock.monotonic() + RUNC_LIMITS.kill_ms;
    for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
      const device = deviceOf(file);
      if (device === undefined) return;
      if (this.#clock.monotonic() > end) {
        throw new Error(
          `the machine's root disk is still mounted as ${device} in another mount namespace of this host; ` +
            `"grep -l ${device} /proc/*/mountinfo" shows whose. The next start tries again`,
        );
      }
      await this.#clock.sleep(wait);
    }
  }

  async close(): Promise<void> {
    this.#keeping = false;
    await this.#filling;
    await Promise.all(this.#ready.splice(0).map(({ mount }) => closeLater(mount)));
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #fill(): void {
    if (!this.#keeping || this.#filling || this.#ready.length >= RUNC_LIMITS.disks_ready) return;
    const filling = this.#one();
    this.#filling = filling.then(
      () => {
        this.#filling = undefined;
        this.#fill();
      },
      () => {
        // The next caller creates a disk itself and gets the error.
        this.#filling = undefined;
      },
    );
  }

  async #one(): Promise<void> {
    const file = join(this.#dir, String(this.#made++));
    await this.make(file);
    this.#ready.push({ file, mount: await openDisk(file) });
  }

  /** The template of all disks, formatted on first use. */
  async #pattern(): Promise<Template> {
    this.#template ??= this.#format();
    this.#template.catch(() => {
      this.#template = undefined;
    });
    return await this.#template;
  }

  /** Creates an empty disk at `file`, overwriting any. */
  async make(file: string): Promise<void> {
    const { size, pieces } = await this.#pattern();
    rmSync(file, { force: true });
    await using disk = await open(file, "wx", 0o600);
    await disk.truncate(size);
    for (const { at, bytes } of pieces) writeSync(disk.fd, bytes, 0, bytes.length, at);
  }

  async #format(): Promise<Template> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const file = join(this.#dir, "template.ext4");
    rmSync(file, { force: true });
    const fd = openSync(file, "w+", 0o600);
    try {
      await makeFileSystem(file, this.#size);
      return { size: fstatSync(fd).size, pieces: [...written(fd)] };
    } finally {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }
}

async function makeFileSystem(file: string, bytes: number): Promise<void> {
  const size = String(Math.floor(bytes / 1024));
  const lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
  // A root disk never grows, and space reserved for that would be most of what is copied.
  const made = ["-q", "-F", "-m", "0", "-O", "^resize_inode", "-J", "size=16", "-E", lazy];
  await program("mkfs.ext4", [...made, file, `${size}k`]);
}

/** Formats a disk of a non-default size, without a template. Renamed when complete. */
async function formatNew(file: string, bytes: number): Promise<void> {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  closeSync(openSync(part, "wx", 0o600));
  await makeFileSystem(part, bytes);
  renameSync(part, file);
}

/** The kernel keeps initializing a prepared disk. If the host's disk is full then, it becomes read-only for good. */
function writable(mount: number): boolean {
  const probe = `/proc/self/fd/${mount}/probe`;
  try {
    mkdirSync(probe);
    rmdirSync(probe);
    return true;
  } catch {
    return false;
  }
}

/** The data extents of a sparse file. */
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
