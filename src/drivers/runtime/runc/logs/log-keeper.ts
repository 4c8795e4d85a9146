/**
 * Rotates the logs of machines, and archives what was rotated. A log that was rotated is archived before it is replaced,
 * unless its machine writes faster than that: then the monitor replaces it.
 */
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { KeptLogs } from "#core/log-settings.ts";
import { type Layout, pathsOf } from "../layout.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { archive } from "./archived.ts";
import { ARCHIVED_MODE, absent, archivedIn, archivedName, firstOf } from "./files.ts";
import { blocksOf } from "./parse.ts";
import { LogBudget, OWNER, ownerOf } from "./retention.ts";

const LOOK_MS = 2000;
/** Logs are swept once in this many checks. */
const SWEEP = 300;
/** Marks the log of a destroyed machine; its age is the log's. */
const DESTROYED = "destroyed";
/** The monitor reopens the log when anything arrives on its pipe. */
const REOPEN = "\n";
/** A file that is being archived; one that a kill left is overwritten. */
const ARCHIVING = "archiving";

export class LogKeeper {
  readonly #layout: Layout;
  readonly #kept: KeptLogs;
  readonly #budget: LogBudget;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closing = new AbortController();
  readonly #damaged = new Set<string>();
  /** The last file that was archived of each machine, so that it is not read again at each check. */
  readonly #archived = new Map<string, string>();
  #running = Promise.resolve();

  constructor(layout: Layout, kept: KeptLogs, { clock, log }: { clock: Clock; log: Log }) {
    this.#layout = layout;
    this.#kept = kept;
    this.#budget = new LogBudget(layout.logs, kept);
    this.#clock = clock;
    this.#log = log;
  }

  run(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (let round = 0; !signal.aborted; round++) {
      try {
        if (round % SWEEP === 0) await this.sweep();
        await this.look();
      } catch (error) {
        this.#log.warn({ error }, "log rotation of machines failed");
      }
      await this.#clock.sleep(LOOK_MS, signal).catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** Said once per file. */
  readonly onDamage = (file: string, error: unknown): void => {
    if (this.#damaged.has(file)) return;
    this.#damaged.add(file);
    this.#log.warn({ error }, `the log ${file} is damaged; its readable parts are still read: ${messageOf(error)}`);
  };

  /** The organization whose budget a machine's logs count for. */
  started(id: string, org_id: string): void {
    const { logs } = pathsOf(this.#layout, id);
    mkdirSync(logs, { recursive: true, mode: 0o700 });
    writeFileSync(join(logs, OWNER), org_id, { mode: 0o600 });
  }

  /** Rotates full logs and archives rotated ones. The monitor rotates too, later, when we are not running. */
  async look(): Promise<void> {
    for (const id of readdirSync(this.#layout.containers)) {
      try {
        await this.#lookAt(id);
      } catch (error) {
        this.#log.warn({ error, machine: id }, "the log of a machine could not be archived");
      }
    }
  }

  async #lookAt(id: string): Promise<void> {
    const { log, control } = pathsOf(this.#layout, id);
    const { size, birthtimeMs } = statSync(log, { throwIfNoEntry: false }) ?? {};
    // Without a log the monitor may still write to the one that was rotated.
    if (size === undefined || birthtimeMs === undefined) return;
    await this.#archiveOnce(id, `${log}.1`);
    // The monitor has set another one aside meanwhile, which is archived at the next look.
    const aside = statSync(`${log}.1`, { throwIfNoEntry: false });
    if (aside && this.#archived.get(id) !== nameOf(aside)) return;
    const is_old = size > 0 && this.#clock.now() - birthtimeMs > RUNC_LIMITS.log_rotated_ms;
    if (size < RUNC_LIMITS.log_bytes && !is_old) return;
    renameSync(log, `${log}.1`);
    tellMonitor(control);
  }

  /** The log is archived as a whole later: readers may be about to read its end. */
  destroyed(id: string): void {
    const { logs } = pathsOf(this.#layout, id);
    if (statSync(logs, { throwIfNoEntry: false })) writeFileSync(join(logs, DESTROYED), "");
  }

  /** Deletes logs of destroyed machines when there are too many, archives the others, and applies age and budgets. */
  async sweep(): Promise<void> {
    const removed = readdirSync(this.#layout.logs)
      .flatMap((id) => {
        const mark = statSync(join(this.#layout.logs, id, DESTROYED), { throwIfNoEntry: false });
        return mark ? [{ id, at: mark.mtimeMs }] : [];
      })
      .sort((a, b) => b.at - a.at);
    const now = this.#clock.now();
    for (const [index, { id, at }] of removed.entries()) {
      const folder = join(this.#layout.logs, id);
      const is_old = now - at > this.#kept.ms || index >= RUNC_LIMITS.logs_kept_machines;
      this.#archived.delete(id);
      if (is_old) rmSync(folder, { recursive: true, force: true });
      else if (now - at > RUNC_LIMITS.log_archived_after_ms) await this.#archiveDestroyed(id);
    }
    await this.#sweepArchived();
  }

  async #sweepArchived(): Promise<void> {
    const gone = await this.#budget.sweep(this.#clock.now());
    if (gone > 0) this.#log.info({ bytes: gone }, "the oldest logs of machines were deleted, for age or budget");
  }

  async #archiveDestroyed(id: string): Promise<void> {
    const { log } = pathsOf(this.#layout, id);
    for (const file of [`${log}.1`, log]) {
      await this.#archiveOnce(id, file);
      await rm(file, { force: true });
    }
  }

  /** Archives a file unless that was done; a kill in between leaves it as it was. */
  async #archiveOnce(id: string, file: string): Promise<void> {
    const { logs } = pathsOf(this.#layout, id);
    // It is read through this handle only: the monitor may put another in its place.
    await using handle = await open(file).catch(absent);
    if (!handle) return;
    const known_as = nameOf(await handle.stat());
    if (this.#archived.get(id) === known_as) return;
    const first = await firstOf(handle);
    const known = await archivedIn(logs);
    if (first !== undefined && !known.some((archived) => archived.first === first)) {
      const number = (known.at(-1)?.number ?? 0) + 1;
      const bytes = await writeArchived(logs, await handle.readFile(), { number, first });
      if (this.#budget.add(await ownerOf(logs), bytes)) await this.#sweepArchived();
    }
    await handle.chmod(ARCHIVED_MODE);
    this.#archived.set(id, known_as);
  }
}

/** What stays the same when a file is renamed. */
const nameOf = ({ ino, birthtimeMs }: Stats): string => `${ino} ${birthtimeMs}`;

async function writeArchived(folder: string, raw: Buffer, known: { number: number; first: string }): Promise<number> {
  const blocks = blocksOf(raw);
  const min = blocks.map((block) => block.min).sort()[0];
  const max = blocks
    .map((block) => block.max)
    .sort()
    .at(-1);
  if (min === undefined || max === undefined) return 0;
  const fresh = join(folder, ARCHIVING);
  const bytes = await archive(raw, blocks);
  {
    await using handle = await open(fresh, "w", 0o600);
    await handle.writeFile(bytes);
    await handle.sync();
  }
  await rename(fresh, join(folder, archivedName({ ...known, min, max })));
  await using handle = await open(folder);
  await handle.sync();
  return bytes.length;
}

function tellMonitor(pipe: string): void {
  try {
    const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      writeSync(fd, REOPEN);
    } finally {
      closeSync(fd);
    }
  } catch {
    // It has just ended; the next boot opens the log by name.
  }
}
