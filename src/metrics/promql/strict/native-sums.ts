import type { FloatHistogram } from "../../histogram/histogram.ts";
import type { Frame } from "../frame.ts";
import { divided, HistogramSum, MixedSchemas } from "./histogram-sum.ts";
import { inform, warn } from "./values.ts";

/** Sums and averages of native histograms, of one series or of several. */

interface Adding {
  frame: Frame;
  /** Where in the query annotations point. */
  at: number;
  isAverage: boolean;
}

interface Named {
  histogram: FloatHistogram | undefined;
  name: string;
}

/** Undefined, with a warning, when they cannot be added. */
export function addAll({ frame, at, isAverage }: Adding, samples: readonly Named[]): FloatHistogram | undefined {
  const hints = new Set(samples.map(({ histogram }) => histogram?.hint));
  const adder = isAverage ? new Averaging() : new Adder();
  let reconciled = false;
  let mixed: string | undefined;
  for (const { histogram, name } of samples) {
    if (!histogram) continue;
    try {
      if (adder.add(histogram)) reconciled = true;
    } catch (thrown) {
      if (!(thrown instanceof MixedSchemas)) throw thrown;
      mixed = name;
      break;
    }
  }
  if (mixed !== undefined) {
    warnMixed(frame, mixed, at);
    return undefined;
  }
  if (hints.has("reset") && hints.has("not_reset"))
    warn(frame, "conflicting counter resets during histogram aggregation", at);
  if (reconciled) inform(frame, "mismatched custom buckets were reconciled during aggregation", at);
  return adder.value;
}

export function warnMixed(frame: Frame, name: string, at: number): void {
  const what = "vector contains a mix of histograms with exponential and custom buckets schemas for metric name";
  warn(frame, `${what} ${JSON.stringify(name)}`, at);
}

class Adder {
  protected sum: HistogramSum | undefined;

  /** Whether custom buckets had to be reconciled. */
  add(histogram: FloatHistogram): boolean {
    if (this.sum) return this.sum.add(histogram).reconciled;
    this.sum = new HistogramSum(histogram);
    return false;
  }

  get value(): FloatHistogram | undefined {
    return this.sum?.value;
  }
}

/** First sums, and goes over to a running mean only when the sum overflows. */
class Averaging extends Adder {
  #count = 0;
  #isRunning = false;

  override add(histogram: FloatHistogram): boolean {
    this.#count++;
    if (!this.sum || this.#count === 1) return super.add(histogram);
    if (!this.#isRunning) {
      const next = this.sum.clone();
      const { reconciled } = next.add(histogram);
      if (!next.overflows) {
        this.sum = next;
        return reconciled;
      }
      this.#isRunning = true;
      const before = this.#count - 1;
      this.sum.change((count) => count / before);
    }
    const share = (this.#count - 1) / this.#count;
    this.sum.change((count) => count * share);
    return this.sum.add(divided(histogram, this.#count)).reconciled;
  }

  override get value(): FloatHistogram | undefined {
    if (!this.sum || this.#isRunning) return this.sum?.value;
    return divided(this.sum.value, this.#count);
  }
}
