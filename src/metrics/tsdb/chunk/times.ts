import { type ByteReader, DamagedBytes, putZigzag, unzigzag } from "../bytes.ts";

/**
 * Timestamps of a chunk: the first one, the usual step, and only what departs from it. A scraper that keeps
 * its times gives `regular`; a missed scrape adds an exception; a source with jitter is written `dense`.
 */
export const TIMES = { regular: 0, sparse: 1, dense: 2 } as const;

export interface CodedTimes {
  kind: number;
  /** The place behind what was written. */
  at: number;
}

/** The step most samples follow (majority vote: exact when more than half agree, good enough otherwise). */
function usualStep(times: Float64Array, from: number, to: number): number {
  let step = 0;
  let votes = 0;
  for (let i = from + 1; i < to; i++) {
    const delta = (times[i] as number) - (times[i - 1] as number);
    if (delta === step) votes++;
    else if (votes === 0) {
      step = delta;
      votes = 1;
    } else votes--;
  }
  return step;
}

/** `bytes` has room for 9 bytes per sample and 32 more. */
export function putTimes(
  bytes: Uint8Array,
  start: number,
  times: Float64Array,
  from: number,
  to: number,
  base_ms: number,
): CodedTimes {
  const step = usualStep(times, from, to);
  let exceptions = 0;
  for (let i = from + 1; i < to; i++) {
    if ((times[i] as number) - (times[i - 1] as number) !== step) exceptions++;
  }
  let at = putZigzag(bytes, start, (times[from] as number) - base_ms);
  at = putZigzag(bytes, at, step);
  if (exceptions === 0) return { kind: TIMES.regular, at };
  const dense = exceptions * 2 >= to - from;
  if (!dense) at = putZigzag(bytes, at, exceptions);
  let last = from;
  for (let i = from + 1; i < to; i++) {
    const off = (times[i] as number) - (times[i - 1] as number) - step;
    if (dense) at = putZigzag(bytes, at, off);
    else if (off !== 0) {
      at = putZigzag(bytes, at, i - last);
      at = putZigzag(bytes, at, off);
      last = i;
    }
  }
  return { kind: dense ? TIMES.dense : TIMES.sparse, at };
}

/** Answers whether the times surely rise, from the one before them on: most do, and need not be looked at again. */
export function readTimes(
  from: ByteReader,
  kind: number,
  count: number,
  into: Float64Array,
  at: number,
  base_ms: number,
): boolean {
  let time = base_ms + from.zigzag();
  const step = from.zigzag();
  into[at] = time;
  const rises = kind === TIMES.regular && step > 0 && (at === 0 || time > (into[at - 1] as number));
  if (kind === TIMES.dense) {
    for (let i = 1; i < count; i++) {
      time += step + unzigzag(from.varint());
      into[at + i] = time;
    }
    return false;
  }
  const exceptions = kind === TIMES.sparse ? from.zigzag() : 0;
  let done = 1;
  for (let k = 0, place = 0; k < exceptions; k++) {
    place += from.zigzag();
    if (place < done || place >= count) throw new DamagedBytes("a timestamp exception lies outside its chunk");
    for (; done < place; done++) into[at + done] = time += step;
    time += step + from.zigzag();
    into[at + done++] = time;
  }
  for (; done < count; done++) into[at + done] = time += step;
  return rises;
}
