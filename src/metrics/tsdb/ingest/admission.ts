import type { Clock } from "#core/clock.ts";
import type { Labels } from "../../source.ts";
import type { Batch, Head } from "../head.ts";
import { labelValue } from "../index/labels.ts";
import { RefSet } from "../index/postings.ts";
import type { SeriesTable } from "../index/series-table.ts";
import type { TsdbLimits } from "../limits.ts";

/** Why a sample was dropped. */
export type DropReason =
  | "too_old"
  | "too_new"
  | "bad_timestamp"
  | "out_of_order"
  | "series_per_app"
  | "series_per_org"
  | "bad_labels";

/** Dropped samples by reason and app. */
export class Drops {
  readonly #most: number;
  readonly byReason = new Map<DropReason, number>();
  /** App → samples dropped because the app has too many series. */
  readonly byApp = new Map<string, number>();

  constructor(most_apps: number) {
    this.#most = most_apps;
  }

  add(reason: DropReason, app?: string): void {
    this.byReason.set(reason, (this.byReason.get(reason) ?? 0) + 1);
    if (app === undefined) return;
    const named = this.byApp.has(app) || this.byApp.size < this.#most ? app : "";
    this.byApp.set(named, (this.byApp.get(named) ?? 0) + 1);
  }
}

/** Decides which series and samples are admitted. */
export class Admission {
  readonly #table: SeriesTable;
  readonly #head: Head;
  readonly #limits: TsdbLimits;
  readonly #clock: Clock;
  readonly #active = new Map<string, number>();
  /**
   * Series of the platform's own. There are so many for each machine, whatever an app does: they do not count as the
   * app's.
   */
  readonly #own = new RefSet(0);
  readonly #active_own = new Map<string, number>();
  readonly drops: Drops;

  constructor(table: SeriesTable, head: Head, limits: TsdbLimits, clock: Clock) {
    this.#table = table;
    this.#head = head;
    this.#limits = limits;
    this.#clock = clock;
    this.drops = new Drops(limits.dropping_apps);
  }

  /** Active series by app. */
  get activeByApp(): ReadonlyMap<string, number> {
    return this.#active;
  }

  /**
   * The ref of a series, a new one within the limits; otherwise undefined, and counted. `own`: of the platform's own.
   */
  series(labels: Labels, own = false): number | undefined {
    const known = this.#table.find(labels);
    if (known !== undefined) {
      if (own) this.#take(known);
      return known;
    }
    if (this.#table.alive >= this.#limits.series_per_org) {
      this.drops.add("series_per_org");
      return undefined;
    }
    const app = labelValue(labels, "app");
    if (!own && this.#isFull(app)) {
      this.drops.add("series_per_app", app);
      return undefined;
    }
    const ref = this.#table.add(labels);
    if (own) this.#own.add(ref);
    // Counts from now on, even if none of its samples is admitted: names alone must not fill the index.
    this.activate(ref, true);
    return ref;
  }

  /** Keeps the admissible samples, in place. */
  admit(batch: Batch): void {
    const { refs, timestamps, bits, length } = batch;
    const now = this.#clock.now();
    const oldest = now - this.#limits.retention_ms;
    const newest = now + this.#limits.future_ms;
    const behind = now - this.#limits.out_of_order_ms;
    let admitted = 0;
    for (let i = 0; i < length; i++) {
      const ref = refs[i] as number;
      const time = timestamps[i] as number;
      const inTime = time >= oldest && time <= newest && Math.floor(time) === time;
      if (!inTime || (time < behind && time < this.#head.lastTime(ref))) {
        this.drops.add(reasonOf(time, oldest, newest));
        continue;
      }
      if (!this.#head.isActive(ref) && !this.activate(ref)) continue;
      if (admitted < i) {
        refs[admitted] = ref;
        timestamps[admitted] = time;
        bits[2 * admitted] = bits[2 * i] as number;
        bits[2 * admitted + 1] = bits[2 * i + 1] as number;
      }
      admitted++;
    }
    batch.length = admitted;
  }

  /** Activates a series if its app is within its limit. WAL replay always may. */
  activate(ref: number, force = false): boolean {
    const app = this.#table.value(ref, "app");
    const own = this.#own.has(ref);
    if (!own && !force && this.#isFull(app)) {
      this.drops.add("series_per_app", app);
      return false;
    }
    count(this.#active, app, 1);
    if (own) count(this.#active_own, app, 1);
    this.#head.activate(ref);
    return true;
  }

  /** Deactivates series. */
  deactivate(refs: readonly number[]): void {
    for (const ref of refs) {
      const app = this.#table.value(ref, "app");
      count(this.#active, app, -1);
      if (this.#own.has(ref)) count(this.#active_own, app, -1);
    }
  }

  #isFull(app: string): boolean {
    return (this.#active.get(app) ?? 0) - (this.#active_own.get(app) ?? 0) >= this.#limits.series_per_app;
  }

  /** Whose it is was not known after a start until now. */
  #take(ref: number): void {
    if (this.#own.has(ref)) return;
    this.#own.add(ref);
    if (this.#head.isActive(ref)) count(this.#active_own, this.#table.value(ref, "app"), 1);
  }
}

function count(counts: Map<string, number>, app: string, by: 1 | -1): void {
  const after = (counts.get(app) ?? 0) + by;
  if (after > 0) counts.set(app, after);
  else counts.delete(app);
}

function reasonOf(time: number, oldest: number, newest: number): DropReason {
  if (!Number.isSafeInteger(time)) return "bad_timestamp";
  if (time > newest) return "too_new";
  return time < oldest ? "too_old" : "out_of_order";
}
