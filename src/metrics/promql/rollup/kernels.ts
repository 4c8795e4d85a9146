import type { Kernel, Window } from "./window.ts";

/**
 * Rollup functions that look at the first, the last or the count of samples: MetricsQL's meaning, which takes the
 * sample before the window into account and extrapolates nothing.
 */

const NONE = Number.NaN;

const count = (w: Window): number => w.to - w.from;
const valueAt = (w: Window, i: number): number => w.values[i] as number;
const timeAt = (w: Window, i: number): number => w.times[i] as number;
const lastOf = (w: Window): number => valueAt(w, w.to - 1);
const seconds = (ms: number): number => ms / 1000;

export const last: Kernel = (w) => (count(w) === 0 ? NONE : lastOf(w));
export const first: Kernel = (w) => (count(w) === 0 ? NONE : valueAt(w, w.from));
export const countSamples: Kernel = (w) => (count(w) === 0 ? NONE : count(w));
export const present: Kernel = (w) => (count(w) > 0 ? 1 : NONE);
export const absent: Kernel = (w) => (count(w) > 0 ? NONE : 1);
export const firstTime: Kernel = (w) => (count(w) === 0 ? NONE : seconds(timeAt(w, w.from)));
export const lastTime: Kernel = (w) => (count(w) === 0 ? NONE : seconds(timeAt(w, w.to - 1)));

/** rate, once counter resets are taken out: between the sample before the window and the last one in it. */
export const derivative: Kernel = (w) => {
  const samples = w.to - w.from;
  let start = w.previous;
  let since = w.previousTime;
  if (Number.isNaN(start)) {
    // One sample alone does not say how long the increase took.
    if (samples < 2) return NONE;
    start = w.values[w.from] as number;
    since = w.times[w.from] as number;
  } else if (samples === 0) return 0;
  return ((w.values[w.to - 1] as number) - start) / (((w.times[w.to - 1] as number) - since) / 1000);
};

export const instantDerivative: Kernel = (w) => {
  const samples = count(w);
  if (samples === 0) return NONE;
  const end = timeAt(w, w.to - 1);
  if (samples === 1) {
    if (Number.isNaN(w.previous)) return NONE;
    return (lastOf(w) - w.previous) / seconds(end - w.previousTime);
  }
  return (lastOf(w) - valueAt(w, w.to - 2)) / seconds(end - timeAt(w, w.to - 2));
};

/** increase and delta. A series that appears inside the window is taken to start at 0 if it looks like it did. */
export const increase: Kernel = (w) => {
  const samples = w.to - w.from;
  if (!Number.isNaN(w.previous)) return samples === 0 ? 0 : (w.values[w.to - 1] as number) - w.previous;
  if (samples === 0) return NONE;
  if (!Number.isNaN(w.realPrevious)) return lastOf(w) - w.realPrevious;
  const start = valueAt(w, w.from);
  let change = 0;
  if (samples > 1) change = valueAt(w, w.from + 1) - start;
  else if (!Number.isNaN(w.realNext)) change = w.realNext - start;
  const fromZero = Math.abs(start) < 10 * (Math.abs(change) + 1);
  return lastOf(w) - (fromZero ? 0 : start);
};

/** Every series starts at 0. */
export const increasePure: Kernel = (w) => {
  if (count(w) === 0) return Number.isNaN(w.realPrevious) ? NONE : 0;
  return lastOf(w) - (Number.isNaN(w.realPrevious) ? 0 : w.realPrevious);
};

export const increaseInside: Kernel = (w) => (count(w) < 2 ? NONE : lastOf(w) - valueAt(w, w.from));

export const instantDelta: Kernel = (w) => {
  const samples = count(w);
  if (samples === 0) return Number.isNaN(w.previous) ? NONE : 0;
  if (samples > 1) return lastOf(w) - valueAt(w, w.to - 2);
  return Number.isNaN(w.previous) ? lastOf(w) : lastOf(w) - w.previous;
};

/** A difference this small in proportion is rounding, not a change. */
function differs(a: number, b: number): boolean {
  return a !== b && Math.abs(a - b) >= 1e-12 * Math.abs(a);
}

export const changes: Kernel = (w) => {
  let before = w.previous;
  let i = w.from;
  let found = 0;
  if (Number.isNaN(before)) {
    if (count(w) === 0) return NONE;
    before = valueAt(w, i++);
    found = 1;
  }
  return found + changesFrom(w, i, before);
};

export const changesInside: Kernel = (w) => (count(w) === 0 ? NONE : changesFrom(w, w.from + 1, valueAt(w, w.from)));

function changesFrom(w: Window, start: number, initial: number): number {
  let before = initial;
  let found = 0;
  for (let i = start; i < w.to; i++) {
    if (!differs(valueAt(w, i), before)) continue;
    found++;
    before = valueAt(w, i);
  }
  return found;
}

/** Steps up or down, the one into the window included. */
function moves(w: Window, up: boolean): number {
  if (count(w) === 0) return Number.isNaN(w.previous) ? NONE : 0;
  let i = w.from;
  let before = Number.isNaN(w.previous) ? valueAt(w, i++) : w.previous;
  let found = 0;
  for (; i < w.to; i++) {
    const value = valueAt(w, i);
    if ((up ? value > before : value < before) && differs(value, before)) found++;
    before = value;
  }
  return found;
}

export const increases: Kernel = (w) => moves(w, true);
export const decreases: Kernel = (w) => moves(w, false);

function climb(w: Window, sign: 1 | -1): number {
  let i = w.from;
  let before = w.previous;
  if (Number.isNaN(before)) {
    if (count(w) === 0) return NONE;
    before = valueAt(w, i++);
  }
  let sum = 0;
  for (; i < w.to; i++) {
    const change = sign * (valueAt(w, i) - before);
    if (change > 0) sum += change;
    before = valueAt(w, i);
  }
  return sum;
}

export const ascent: Kernel = (w) => climb(w, 1);
export const descent: Kernel = (w) => climb(w, -1);

export const lag: Kernel = (w) => {
  if (count(w) > 0) return seconds(w.now - timeAt(w, w.to - 1));
  return Number.isNaN(w.previous) ? NONE : seconds(w.now - w.previousTime);
};

export const lifetime: Kernel = (w) => {
  if (!Number.isNaN(w.previous)) return count(w) === 0 ? NONE : seconds(timeAt(w, w.to - 1) - w.previousTime);
  return count(w) < 2 ? NONE : seconds(timeAt(w, w.to - 1) - timeAt(w, w.from));
};

export const scrapeInterval: Kernel = (w) => {
  if (!Number.isNaN(w.previous))
    return count(w) === 0 ? NONE : seconds(timeAt(w, w.to - 1) - w.previousTime) / count(w);
  return count(w) < 2 ? NONE : seconds(timeAt(w, w.to - 1) - timeAt(w, w.from)) / (count(w) - 1);
};

export const integrate: Kernel = (w) => {
  let i = w.from;
  let value = w.previous;
  let since = w.now - w.length;
  if (Number.isNaN(value)) {
    if (count(w) === 0) return NONE;
    value = valueAt(w, i);
    since = timeAt(w, i);
    i++;
  }
  let sum = 0;
  for (; i < w.to; i++) {
    sum += value * seconds(timeAt(w, i) - since);
    since = timeAt(w, i);
    value = valueAt(w, i);
  }
  return sum + value * seconds(w.now - since);
};

export const lastChangeTime: Kernel = (w) => {
  if (count(w) === 0) return NONE;
  const value = lastOf(w);
  for (let i = w.to - 2; i >= w.from; i--) {
    if (valueAt(w, i) !== value) return seconds(timeAt(w, i + 1));
  }
  return Number.isNaN(w.previous) || w.previous !== value ? seconds(timeAt(w, w.from)) : NONE;
};

/** Candles belong to [start, now), so that neighbours meet: a sample at `now` opens the next one. */
function candleEnd(w: Window): number {
  let end = w.to;
  while (end > w.from && timeAt(w, end - 1) >= w.now) end--;
  return end;
}

function candleStart(w: Window): number {
  return w.previousTime + w.length >= w.now ? w.previous : NONE;
}

function extreme(w: Window, better: (a: number, b: number) => boolean): number {
  let best = candleStart(w);
  const end = candleEnd(w);
  for (let i = w.from; i < end; i++) {
    if (Number.isNaN(best) || better(valueAt(w, i), best)) best = valueAt(w, i);
  }
  return best;
}

export const candleOpen: Kernel = (w) => {
  const before = candleStart(w);
  if (!Number.isNaN(before)) return before;
  return candleEnd(w) > w.from ? valueAt(w, w.from) : NONE;
};

export const candleClose: Kernel = (w) => {
  const end = candleEnd(w);
  return end > w.from ? valueAt(w, end - 1) : candleStart(w);
};

export const candleHigh: Kernel = (w) => extreme(w, (a, b) => a > b);
export const candleLow: Kernel = (w) => extreme(w, (a, b) => a < b);
