import { BOUNDS } from "./plane/counters.ts";
import type { Count } from "./table.ts";
import type { Colour } from "./workers.ts";

/** One sample of one series. */
export interface ProxySample {
  /** The owner, which is not a label. */
  org_id: string;
  name: string;
  /** `app`, `region`, `host`, `proxy_id`; `instance` on `svc_app_`; and the series' own. */
  labels: Record<string, string>;
  value: number;
  /** Whether it is a counter. */
  counter?: boolean;
}

interface Series {
  org_id: string;
  name: string;
  labels: Record<string, string>;
  value: number;
  histogram?: { buckets: number[]; sum: number };
  changed_at: number;
}

/** A series without changes for this long is dropped: its machine or proxy was removed. */
const FORGET_MS = 15 * 60 * 1000;

/** Totals of what all workers counted. A new proxy_id starts at zero. */
export class Totals {
  readonly #series = new Map<string, Series>();

  add(counts: readonly Count[], proxy_id: Colour, now: number): void {
    for (const { name, org_id, labels: own, by, buckets, sum } of counts) {
      const labels = { ...own, proxy_id };
      const key = `${org_id} ${name} ${JSON.stringify(labels)}`;
      const series: Series = this.#series.get(key) ?? { org_id, name, labels, value: 0, changed_at: now };
      this.#series.set(key, series);
      series.value += by;
      series.changed_at = now;
      if (!buckets) continue;
      series.histogram ??= { buckets: buckets.map(() => 0), sum: 0 };
      const histogram = series.histogram;
      histogram.sum += sum ?? 0;
      for (const [at, count] of buckets.entries()) histogram.buckets[at] = (histogram.buckets[at] ?? 0) + count;
    }
  }

  /** Histograms are `_bucket{le}`, `_sum` and `_count`. */
  *samples(now: number): Generator<ProxySample> {
    for (const [key, series] of this.#series) {
      if (now - series.changed_at > FORGET_MS) {
        this.#series.delete(key);
        continue;
      }
      const { org_id, name, labels, value, histogram } = series;
      if (!histogram) yield { org_id, name, labels, value, counter: true };
      else yield* histogramSamples({ org_id, name, labels, value, histogram });
    }
  }
}

function* histogramSamples(series: Required<Omit<Series, "changed_at">>): Generator<ProxySample> {
  const { org_id, name, labels, value, histogram } = series;
  let below = 0;
  for (const [at, count] of histogram.buckets.entries()) {
    below += count;
    const le = at < BOUNDS.length ? String(BOUNDS[at]) : "+Inf";
    yield { org_id, name: `${name}_bucket`, labels: { ...labels, le }, value: below, counter: true };
  }
  yield { org_id, name: `${name}_sum`, labels, value: histogram.sum, counter: true };
  yield { org_id, name: `${name}_count`, labels, value, counter: true };
}
