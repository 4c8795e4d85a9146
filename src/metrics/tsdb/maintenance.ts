import { basename } from "node:path";
import type { Clock } from "#core/clock.ts";
import { SteadyClock } from "#core/steady-clock.ts";
import type { Columns } from "../source.ts";
import type { Block } from "./block/block.ts";
import type { Flushed } from "./block/format.ts";
import type { BlockStore } from "./block/store.ts";
import { settle } from "./columns.ts";
import type { Head } from "./head.ts";
import { RefSet } from "./index/postings.ts";
import type { SeriesTable } from "./index/series-table.ts";
import type { Admission } from "./ingest/admission.ts";
import { DAY_MS, type TsdbLimits } from "./limits.ts";
import type { Wal, WalPosition } from "./wal/wal.ts";
import type { HeadWindow } from "./window.ts";

const QUICK_ZSTD = 3;
/** Compression level of merged blocks, which stay for weeks. */
const THOROUGH_ZSTD = 9;
/** Blocks of the same two hours, from late samples, that are merged without waiting for the end of the day. */
const SAME_SPAN_BLOCKS = 4;
/** The index drops dead series when at least one in this many is dead; checked hourly. */
const DEAD_PART = 10;
const FORGET_MS = 3_600_000;
/** After a failed block write, appends do not retry before this. */
const RETRY_MS = 5000;

interface Parts {
  head: Head;
  wal: Wal;
  table: SeriesTable;
  blocks: BlockStore;
  admission: Admission;
  limits: TsdbLimits;
  clock: Clock;
}

/**
 * Background work of an org: full windows become blocks, blocks of a day are merged, damaged blocks rewritten, expired
 * ones deleted. One at a time.
 */
export class Maintenance {
  readonly #parts: Parts;
  readonly #steady: SteadyClock;
  /** Frozen windows with their WAL position, in order: see `replay`. */
  readonly #frozen: { window: HeadWindow; position: WalPosition }[] = [];
  #running: Promise<void> | undefined;
  #stopped = false;
  #lookedForDead: number;
  #retryAt = 0;
  /** Why the last block could not be written. */
  failure: Error | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#lookedForDead = parts.clock.monotonic();
    this.#steady = new SteadyClock(parts.clock, parts.limits.steady_clock_ms);
  }

  /** Whether a window is due to become a block. Cheap: checked after every append. */
  get due(): boolean {
    const { head, clock } = this.#parts;
    if (this.failure && clock.monotonic() < this.#retryAt) return false;
    return this.#frozen.length > 0 || head.windows.some((window) => this.#isDue(window)) || this.#pressing;
  }

  /** Does what is due. Never rejects: errors are in `failure` and retried. */
  run(): Promise<void> {
    this.#running ??= this.#work()
      .then(
        () => {
          this.failure = undefined;
        },
        (thrown: unknown) => {
          this.#retryAt = this.#parts.clock.monotonic() + RETRY_MS;
          this.failure = thrown instanceof Error ? thrown : new Error(String(thrown));
        },
      )
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** Compacts everything, due or not. Rejects on failure. */
  async compact(): Promise<void> {
    while (this.#running) await this.#running;
    const work = this.#compactAll();
    // Regular maintenance waits for this; the failure is ours to report.
    this.#running = work
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
    await work;
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #compactAll(): Promise<void> {
    for (const window of this.#parts.head.windows.filter(({ frozen }) => !frozen)) this.#freeze(window);
    await this.#writeFrozen();
    for (const day of daysOf(this.#parts.blocks.list)) if (day.length > 1) await this.#merge(day);
  }

  async #work(): Promise<void> {
    this.#freezeDue();
    await this.#writeFrozen();
    // A damaged block is rewritten from what is readable; the file is quarantined.
    for (const block of this.#parts.blocks.list) if (block.damage.length > 0) await this.#merge([block]);
    for (const group of this.#mergeable()) await this.#merge(group);
    this.#expire();
    this.#forgetDead();
  }

  #isDue(window: HeadWindow): boolean {
    const { head, limits, clock } = this.#parts;
    if (window.frozen) return false;
    const past = Math.max(window.end_ms, window.opened_at_newest_ms) + limits.window_grace_ms;
    return head.newest_ms >= past || clock.monotonic() - window.written_at >= limits.window_idle_ms;
  }

  get #pressing(): boolean {
    const { head, wal, limits } = this.#parts;
    if (head.windows.length === 0) return false;
    return head.bytes > limits.head_bytes || head.windows.length > limits.open_windows || wal.bytes > limits.wal_bytes;
  }

  #freezeDue(): void {
    const { head } = this.#parts;
    for (const window of head.windows.filter((candidate) => this.#isDue(candidate))) this.#freeze(window);
    const open = head.windows.filter(({ frozen }) => !frozen);
    if (this.#frozen.length > 0 || open.length === 0 || !this.#pressing) return;
    const [longest_idle] = open.sort((a, b) => a.written_at - b.written_at || a.start_ms - b.start_ms);
    if (longest_idle) this.#freeze(longest_idle);
  }

  #freeze(window: HeadWindow): void {
    const { head, wal, admission } = this.#parts;
    admission.deactivate(head.freeze(window));
    wal.cut();
    this.#frozen.push({ window, position: wal.position });
  }

  async #writeFrozen(): Promise<void> {
    const { head, wal, table, blocks } = this.#parts;
    for (let next = this.#frozen[0]; next; next = this.#frozen[0]) {
      const { window, position } = next;
      const { start_ms, end_ms } = window;
      await blocks.write(
        {
          start_ms,
          end_ms,
          refs: window.refs().sort((a, b) => table.compare(a, b)),
          labels: (ref) => table.spell(ref),
          read: (ref, into) => head.readWindow(window, ref, into),
          flushed: [{ start_ms, end_ms, position }],
          replaces: [],
          zstd_level: QUICK_ZSTD,
        },
        () => this.#stopped,
      );
      this.#frozen.shift();
      head.drop(window);
      wal.release(window.id);
    }
  }

  /** Blocks to merge: completed days, and spans with many blocks from late samples. */
  #mergeable(): Block[][] {
    const { blocks, head, limits } = this.#parts;
    const newest = blocks.list.reduce((end, block) => Math.max(end, block.end_ms), head.newest_ms);
    return daysOf(blocks.list).flatMap((day) => {
      const over = newest >= dayOf(day[0]) + DAY_MS + limits.window_grace_ms;
      if (over) return day.length > 1 ? [day] : [];
      return [...Map.groupBy(day, ({ start_ms }) => start_ms).values()].filter(
        (same) => same.length >= SAME_SPAN_BLOCKS,
      );
    });
  }

  async #merge(merged: readonly Block[]): Promise<void> {
    const { table, blocks } = this.#parts;
    const refs = new RefSet(table.count);
    for (const block of merged) refs.addAll(block.refs);
    await blocks.write(
      {
        start_ms: Math.min(...merged.map(({ start_ms }) => start_ms)),
        end_ms: Math.max(...merged.map(({ end_ms }) => end_ms)),
        refs: refs.list().sort((a, b) => table.compare(a, b)),
        labels: (ref) => table.spell(ref),
        read: (ref, into) => readAll(merged, ref, into),
        flushed: this.#stillNeeded(merged.flatMap(({ directory }) => directory.flushed)),
        replaces: merged.map(({ path }) => basename(path)),
        zstd_level: THOROUGH_ZSTD,
      },
      () => this.#stopped,
    );
  }

  /** Positions in deleted segments are obsolete. */
  #stillNeeded(flushed: Flushed[]): Flushed[] {
    const { wal } = this.#parts;
    return flushed.filter(({ position }) => position.segment >= wal.oldestSegment);
  }

  #expire(): void {
    const { blocks, clock, limits } = this.#parts;
    // Called every time, so that a clock jump is noticed.
    if (!this.#steady.isSteady()) return;
    const oldest = clock.now() - limits.retention_ms;
    blocks.remove(blocks.list.filter(({ end_ms }) => end_ms <= oldest));
  }

  #forgetDead(): void {
    const { table, blocks, head, clock } = this.#parts;
    if (clock.monotonic() - this.#lookedForDead < FORGET_MS) return;
    this.#lookedForDead = clock.monotonic();
    const living = new RefSet(table.count);
    for (const block of blocks.list) living.addAll(block.refs);
    for (const window of head.windows) for (const ref of window.refs()) living.add(ref);
    for (let ref = 0; ref < table.count; ref++) if (head.isActive(ref)) living.add(ref);
    if ((table.alive - living.size) * DEAD_PART > table.alive) table.remove(living);
  }
}

function readAll(blocks: readonly Block[], ref: number, into: Columns): void {
  for (const block of blocks) {
    const place = block.place(ref);
    if (place >= 0) block.read(place, -Infinity, Infinity, into);
  }
  settle(into);
}

function dayOf(block: Block | undefined): number {
  return Math.floor((block?.start_ms ?? 0) / DAY_MS) * DAY_MS;
}

/** Blocks by the day they lie in, in the order they were written. */
function daysOf(blocks: readonly Block[]): Block[][] {
  return [...Map.groupBy(blocks, (block) => dayOf(block)).values()];
}
