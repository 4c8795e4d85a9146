import type { FloatHistogram } from "../../histogram/histogram.ts";
import type { Labels } from "../../source.ts";
import type { Batch } from "../head.ts";
import { KeyCache } from "../index/key-cache.ts";
import { BadLabels, storedLabels } from "../index/labels.ts";
import type { TsdbLimits } from "../limits.ts";
import type { DropReason } from "./admission.ts";
import { GrowingBatch } from "./batch.ts";
import { fitted } from "./native-histogram.ts";

/** Where imported samples go: an org's partition, or a remote engine. */
export interface Intake {
  readonly limits: TsdbLimits;
  /** Whether native histograms can be stored. */
  readonly takes_histograms: boolean;
  /** Incremented when earlier series refs become invalid. */
  readonly generation: number;
  /**
   * The ref of the series with these labels; undefined, and counted, when it is refused. One of the platform's own does
   * not count for its app.
   */
  series(labels: Labels, own?: boolean): number | undefined;
  dropped(reason: DropReason): void;
  /** Appends admitted samples and returns their number. Throws StorageError: then nothing was stored. */
  append(batch: Batch): number;
}

/** A refused part of a body: where, and why. */
export interface ImportProblem {
  /** Text: counted from 1. */
  line?: number;
  column?: number;
  /** Binary: counted from 0. */
  byte?: number;
  problem: string;
}

export interface ImportResult {
  /** Samples stored. */
  samples: number;
  /** Samples that were read but dropped: too old, too many series, …; the status says which. */
  dropped: number;
  /** The first problems; `problem_count` is the total. */
  problems: ImportProblem[];
  problem_count: number;
}

const NOT_SENT = "the external storage takes no native histograms";
/** Known sets of added labels. One more: all are dropped and renumbered. */
const SCOPES_MOST = 100_000;
/** Targets with staleness tracking. One more is imported without it. */
const TARGETS_MOST = 100_000;
const STALE_LOW = 2;
const STALE_HIGH = 0x7ff0_0000;

/** The common sink of all formats: finds series, collects, stores, reports. */
export class Importer {
  readonly #intake: Intake;
  readonly cache: KeyCache;
  readonly batch = new GrowingBatch();
  readonly #scopes = new Map<string, number>();
  #nextScope = 1;
  /** Series of each target's last scrape, in order and sorted. */
  readonly #targets = new Map<string, { order: Uint32Array; sorted: Uint32Array }>();
  #result: ImportResult = emptyResult();
  #read = 0;

  constructor(intake: Intake) {
    this.#intake = intake;
    this.cache = new KeyCache(intake.limits.key_cache_bytes);
  }

  begin(): void {
    this.batch.reset();
    this.cache.sync(this.#intake.generation);
    this.#result = emptyResult();
    this.#read = 0;
  }

  /** A number for the added labels, so that cached keys of other senders do not match. */
  scopeOf(added: Labels): number {
    if (added.length === 0) return 0;
    const key = JSON.stringify(added);
    let scope = this.#scopes.get(key);
    if (scope === undefined) {
      if (this.#scopes.size >= SCOPES_MOST) this.#scopes.clear();
      scope = this.#nextScope++;
      this.#scopes.set(key, scope);
    }
    return scope;
  }

  /** The series of these labels; undefined when it is refused. Throws BadLabels. */
  series(pairs: readonly [string, string][], added: Labels, own = false): number | undefined {
    return this.#intake.series(storedLabels(pairs, added, this.#intake.limits), own);
  }

  push(ref: number, time: number, low: number, high: number): void {
    this.batch.push(ref, time, low, high);
    this.#read++;
  }

  /** A native histogram; one that cannot be stored is reported. */
  pushNative(ref: number, time: number, histogram: FloatHistogram, place: Omit<ImportProblem, "problem">): void {
    this.#read++;
    try {
      if (!this.#intake.takes_histograms) throw new RangeError(NOT_SENT);
      this.batch.pushHistogram(ref, time, fitted(histogram, this.#intake.limits.histogram_buckets));
    } catch (thrown) {
      this.reportNative(thrown, place);
    }
  }

  /** A histogram that is none is reported; other errors are thrown. */
  reportNative(thrown: unknown, place: Omit<ImportProblem, "problem">): void {
    if (!(thrown instanceof RangeError)) throw thrown;
    this.report({ ...place, problem: thrown.message });
  }

  /** A sample that says that the series ended. */
  pushEnd(ref: number, time: number): void {
    this.push(ref, time, STALE_LOW, STALE_HIGH);
  }

  /** Counts a sample whose series was refused. */
  refuse(): void {
    this.#read++;
  }

  report(problem: ImportProblem): void {
    this.#result.problem_count++;
    if (this.#result.problems.length < this.#intake.limits.problems_reported) this.#result.problems.push(problem);
  }

  /** Invalid labels cost their sample and are reported; other errors are thrown. */
  reportLabels(thrown: unknown, place: Omit<ImportProblem, "problem">): void {
    if (!(thrown instanceof BadLabels)) throw thrown;
    this.#intake.dropped("bad_labels");
    this.report({ ...place, problem: thrown.message });
  }

  /** Stores what was collected. Throws StorageError, and then nothing was stored. */
  end(): ImportResult {
    const stored = this.#intake.append(this.batch);
    this.#result.samples = stored;
    this.#result.dropped = this.#read - stored;
    return this.#result;
  }

  /**
   * After a scrape: series missing since the target's last one get a staleness marker, so that they end now and not
   * five minutes later. An empty batch ends them all.
   */
  markMissing(target: string, time: number): void {
    const before = this.#targets.get(target);
    if (before && this.#isSame(before.order)) return;
    const order = this.batch.refs.slice(0, this.batch.length);
    const now = order.toSorted();
    if (now.length === 0) this.#targets.delete(target);
    else if (before || this.#targets.size < TARGETS_MOST) this.#targets.set(target, { order, sorted: now });
    let at = 0;
    for (const ref of before?.sorted ?? []) {
      while (at < now.length && (now[at] as number) < ref) at++;
      if (now[at] !== ref) this.push(ref, time, STALE_LOW, STALE_HIGH);
    }
  }

  /** A target mostly has the same series in the same order: then nothing is missing or needs sorting. */
  #isSame(order: Uint32Array): boolean {
    const { refs, length } = this.batch;
    if (order.length !== length) return false;
    for (let i = 0; i < length; i++) if (refs[i] !== order[i]) return false;
    return true;
  }
}

function emptyResult(): ImportResult {
  return { samples: 0, dropped: 0, problems: [], problem_count: 0 };
}
