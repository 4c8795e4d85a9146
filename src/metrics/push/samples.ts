/** Collects pushed samples of any format for the engine. */
import { fail } from "#core/errors.ts";
import { BatchBuilder, spell } from "../batch-builder.ts";
import type { FloatHistogram } from "../histogram/histogram.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { PUSH_LIMITS } from "./limits.ts";

export class PushedSamples {
  readonly #batch = new BatchBuilder();
  count = 0;
  /** How many of them are native histograms. */
  histograms = 0;

  /** A function that adds samples of this series; its labels are encoded once. */
  series(labels: Readonly<Record<string, string>>): (timestamp_ms: number, value: number) => void {
    const { __name__ = "", ...others } = labels;
    const spelled = spell(__name__, others);
    return (timestamp_ms, value) => {
      this.#counted();
      this.#batch.pushValue(spelled, timestamp_ms, value);
    };
  }

  /** A function that adds native histograms of this series. */
  natives(labels: Readonly<Record<string, string>>): (timestamp_ms: number, histogram: FloatHistogram) => void {
    const { __name__ = "", ...others } = labels;
    const spelled = spell(__name__, others);
    return (timestamp_ms, histogram) => {
      this.#counted();
      this.histograms++;
      this.#batch.pushNative(spelled, timestamp_ms, histogram);
    };
  }

  /** A sample that ends its series. */
  ended(labels: Readonly<Record<string, string>>, timestamp_ms: number): void {
    this.#counted();
    const { __name__ = "", ...others } = labels;
    this.#batch.end(spell(__name__, others), timestamp_ms);
  }

  #counted(): void {
    if (++this.count > PUSH_LIMITS.push_samples)
      fail("payload_too_large", `a pushed body has at most ${PUSH_LIMITS.push_samples} samples (limit push_samples)`);
  }

  build(): SeriesBatch {
    return { ...this.#batch.build(), counted: true };
  }
}
