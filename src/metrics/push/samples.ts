/** Collects pushed samples of any format for the engine. */
import { fail } from "#core/errors.ts";
import { BatchBuilder, spell } from "../batch-builder.ts";
import type { FloatHistogram } from "../histogram/histogram.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { PUSH_LIMITS } from "./limits.ts";

/** Labels that the platform sets, whatever the sender says: those of a machine that pushes. */
export type OwnLabels = Readonly<Record<string, string>> | undefined;

export class PushedSamples {
  readonly #batch = new BatchBuilder();
  readonly #own: OwnLabels;
  count = 0;
  /** How many of them are native histograms. */
  histograms = 0;

  constructor(own?: OwnLabels) {
    this.#own = own;
  }

  /** A function that adds samples of this series; its labels are encoded once. */
  series(labels: Readonly<Record<string, string>>): (timestamp_ms: number, value: number) => void {
    const spelled = this.#spelled(labels);
    return (timestamp_ms, value) => {
      this.#counted();
      this.#batch.pushValue(spelled, timestamp_ms, value);
    };
  }

  /** A function that adds native histograms of this series. */
  natives(labels: Readonly<Record<string, string>>): (timestamp_ms: number, histogram: FloatHistogram) => void {
    const spelled = this.#spelled(labels);
    return (timestamp_ms, histogram) => {
      this.#counted();
      this.histograms++;
      this.#batch.pushNative(spelled, timestamp_ms, histogram);
    };
  }

  /** A sample that ends its series. */
  ended(labels: Readonly<Record<string, string>>, timestamp_ms: number): void {
    this.#counted();
    this.#batch.end(this.#spelled(labels), timestamp_ms);
  }

  #spelled({ __name__ = "", ...others }: Readonly<Record<string, string>>): Uint8Array {
    return spell(__name__, { ...others, ...this.#own });
  }

  #counted(): void {
    if (++this.count > PUSH_LIMITS.push_samples)
      fail("payload_too_large", `a pushed body has at most ${PUSH_LIMITS.push_samples} samples (limit push_samples)`);
  }

  build(): SeriesBatch {
    return { ...this.#batch.build(), counted: true };
  }
}
