import { type Buckets, type FloatHistogram, hasCustomBuckets, sameNumbers, withHint } from "./histogram.ts";
import { above, atBounds, atSchema, commonBounds, widerZero } from "./layout.ts";

/** Counter resets of histograms: any bucket that lost observations shows one. */

/** Whether the counter was reset between two samples. A hint of the newer one decides. */
export function detectReset(now: FloatHistogram, before: FloatHistogram): boolean {
  if (now.hint === "reset") return true;
  if (now.hint === "not_reset") return false;
  if (now.count < before.count) return true;
  if (hasCustomBuckets(now)) return !hasCustomBuckets(before) || customReset(now, before);
  if (now.schema > before.schema || now.zero_threshold < before.zero_threshold) return true;
  const zero = widerZero(before, now.zero_threshold);
  if (zero.threshold !== now.zero_threshold || now.zero_count < zero.count) return true;
  const old = atSchema(before, now.schema);
  const lost = (side: "positive" | "negative"): boolean =>
    lostAny(now[side], above(old[side], now.schema, now.zero_threshold));
  return lost("positive") || lost("negative");
}

/** Bounds that only one of them has do not count. */
function customReset(now: FloatHistogram, before: FloatHistogram): boolean {
  const bounds = commonBounds(now.bounds, before.bounds);
  return lostAny(atBounds(now, bounds).positive, atBounds(before, bounds).positive);
}

function lostAny(now: Buckets, before: Buckets): boolean {
  let at = 0;
  return before.indexes.some((index, i) => {
    while (at < now.indexes.length && (now.indexes[at] as number) < index) at++;
    const has = now.indexes[at] === index ? (now.counts[at] as number) : 0;
    return has < (before.counts[i] as number);
  });
}

/**
 * A stored sample with what is known of a reset since the sample before it in its series. Only that there was none is
 * said: where there may have been one, whoever reads both compares them, because either may come from elsewhere.
 */
export function hintAfter(now: FloatHistogram, before: FloatHistogram | undefined): FloatHistogram {
  if (now.hint === "gauge") return now;
  const continues = now.hint !== "reset" && before !== undefined && before.hint !== "gauge" && growsFrom(now, before);
  return withHint(now, continues ? "not_reset" : "unknown");
}

function growsFrom(now: FloatHistogram, before: FloatHistogram): boolean {
  return (
    now.schema === before.schema &&
    now.zero_threshold === before.zero_threshold &&
    sameNumbers(now.bounds, before.bounds) &&
    now.count >= before.count &&
    now.zero_count >= before.zero_count &&
    !lostAny(now.positive, before.positive) &&
    !lostAny(now.negative, before.negative)
  );
}

/** A sample with a hint that says whether there was a reset since the one before. */
export function resetAfter(now: FloatHistogram, before: FloatHistogram | undefined): FloatHistogram {
  if (now.hint !== "unknown" || !before) return now;
  return withHint(now, detectReset(now, before) ? "reset" : "not_reset");
}
