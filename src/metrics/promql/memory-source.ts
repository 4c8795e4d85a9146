import type { FloatHistogram } from "../histogram/histogram.ts";
import { copyBits } from "../nan-bits.ts";
import { compileRegex } from "../regex.ts";
import type { Columns, Labels, Matcher, SampleSource, Selection, Series } from "../source.ts";
import { labelValue } from "./labels.ts";

/** A series of a MemorySource: plain arrays, timestamps rising. */
export interface MemorySeries {
  labels: Labels;
  timestamps: ArrayLike<number>;
  values: ArrayLike<number>;
  /** At the places of native histograms, whose values do not count. */
  histograms?: readonly (FloatHistogram | undefined)[];
}

/**
 * A SampleSource of plain arrays, for tests of the language alone. It passes the same suite as the database.
 */
export function memorySource(all: readonly MemorySeries[]): SampleSource {
  return {
    select: (selection) => {
      const matches = matcherOf(selection.selector);
      const found = all
        .map((series, ref) => ({ series, ref }))
        .filter(({ series }) => matches(series.labels) && overlaps(series, selection));
      const list = found.map(({ series, ref }) => new MemoryReader(series, ref, selection));
      return Object.assign(list, { count: list.length });
    },
  };
}

/** Series without a sample in the range are left out, as the database leaves them out. */
function overlaps({ timestamps }: MemorySeries, { start_ms, end_ms }: Selection): boolean {
  const { length } = timestamps;
  return length > 0 && (timestamps[0] as number) <= end_ms && (timestamps[length - 1] as number) >= start_ms;
}

function matcherOf(selector: Selection["selector"]): (labels: Labels) => boolean {
  const groups = selector.map((group) => group.map(testOf));
  return (labels) => groups.some((tests) => tests.every((test) => test(labels)));
}

function testOf({ name, op, value }: Matcher): (labels: Labels) => boolean {
  const wanted = !op.startsWith("!");
  if (!op.endsWith("~")) return (labels) => (labelValue(labels, name) === value) === wanted;
  const matches = compileRegex(value);
  return (labels) => matches(labelValue(labels, name)) === wanted;
}

/** The first place whose timestamp is after `time`. */
function firstAfter(timestamps: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = timestamps.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((timestamps[middle] as number) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Refers to the histograms, or leaves them out where nobody asks for them. */
function putHistograms(into: Columns, histograms: readonly (FloatHistogram | undefined)[]): void {
  let kept = 0;
  for (const [i, histogram] of histograms.entries()) {
    if (histogram && !into.histograms) continue;
    into.timestamps[kept] = into.timestamps[i] as number;
    copyBits(into.values, i, into.values, kept);
    if (histogram) into.histograms?.put(into.values, kept, histogram);
    kept++;
  }
  into.length = kept;
}

class MemoryReader implements Series {
  readonly ref: number;
  readonly labels: Labels;
  readonly #series: MemorySeries;
  readonly #selection: Selection;

  constructor(series: MemorySeries, ref: number, selection: Selection) {
    this.ref = ref;
    this.labels = series.labels;
    this.#series = series;
    this.#selection = selection;
  }

  read(into: Columns): void {
    const { timestamps, values } = this.#series;
    const from = firstAfter(timestamps, this.#selection.start_ms - 1);
    const to = Math.max(from, firstAfter(timestamps, this.#selection.end_ms));
    const count = to - from;
    if (into.timestamps.length < count) {
      into.timestamps = new Float64Array(count * 2);
      into.values = new Float64Array(count * 2);
    }
    // A typed array copies bits, so a staleness marker stays one.
    if (timestamps instanceof Float64Array && values instanceof Float64Array) {
      into.timestamps.set(timestamps.subarray(from, to));
      into.values.set(values.subarray(from, to));
    } else {
      for (let i = 0; i < count; i++) {
        into.timestamps[i] = timestamps[from + i] as number;
        into.values[i] = values[from + i] as number;
      }
    }
    into.length = count;
    if (this.#series.histograms) putHistograms(into, this.#series.histograms.slice(from, to));
  }

  newest(after_ms: number, at_ms: number): { timestamp: number; value: number } | undefined {
    const { timestamps, values, histograms } = this.#series;
    let place = firstAfter(timestamps, at_ms) - 1;
    while (histograms?.[place]) place--;
    const timestamp = timestamps[place];
    if (timestamp === undefined || timestamp <= after_ms) return undefined;
    return { timestamp, value: values[place] as number };
  }
}
