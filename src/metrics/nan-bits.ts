/**
 * What a NaN in a column means. The bits are read where they lie: a NaN that travels as a number may come out as
 * another NaN, since JavaScript knows only one.
 */
const HIGH = 0x7ff00000;
const STALE = 2;
/** From here on the low word numbers native histograms. */
const HISTOGRAMS = 3;

function words(values: Float64Array, i: number): Uint32Array {
  return new Uint32Array(values.buffer, values.byteOffset + i * 8, 2);
}

/** Whether the series ended here. */
export function isStaleAt(values: Float64Array, i: number): boolean {
  if (!Number.isNaN(values[i] as number)) return false;
  const [low, high] = words(values, i);
  return low === STALE && high === HIGH;
}

/** The number of the native histogram that stands here, undefined when none does. */
export function histogramAt(values: Float64Array, i: number): number | undefined {
  if (!Number.isNaN(values[i] as number)) return undefined;
  const [low = 0, high] = words(values, i);
  return high === HIGH && low >= HISTOGRAMS ? low - HISTOGRAMS : undefined;
}

/** Whether a value of these two words refers to a histogram. */
export const isHistogram = (low: number, high: number): boolean => high === HIGH && low >= HISTOGRAMS;

export const histogramId = (low: number): number => low - HISTOGRAMS;

/** The two words of a reference to a histogram. */
export const histogramWords = (id: number): [low: number, high: number] => [HISTOGRAMS + id, HIGH];

export function putHistogram(values: Float64Array, i: number, id: number): void {
  words(values, i).set([HISTOGRAMS + id, HIGH]);
}

export function putStale(values: Float64Array, i: number): void {
  words(values, i).set([STALE, HIGH]);
}

/** Moves a value without looking at it as a number. */
export function copyBits(from: Float64Array, i: number, to: Float64Array, j: number): void {
  words(to, j).set(words(from, i));
}
