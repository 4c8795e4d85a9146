import { STALE_NAN } from "./source.ts";
import { encodeLabels } from "./tsdb/index/labels.ts";
import type { SeriesBatch } from "./tsdb/ingest/series-batch.ts";

/** A series of our own as a batch names it; a label without a value is no label. */
export function spell(name: string, labels: Readonly<Record<string, string>>): Uint8Array {
  const pairs = Object.entries({ ...labels, __name__: name }).filter(([, value]) => value !== "");
  return encodeLabels(pairs.sort(([a], [b]) => (a < b ? -1 : 1)).flat());
}

/** Gathers samples of our own senders, whose series are spelled already (see `spell`), into one batch. */
export class BatchBuilder {
  readonly #spelled: Uint8Array[] = [];
  readonly #timestamps: number[] = [];
  readonly #values: number[] = [];

  push(spelled: Uint8Array, timestamp_ms: number, value: number): void {
    this.#spelled.push(spelled);
    this.#timestamps.push(timestamp_ms);
    this.#values.push(value);
  }

  /** The series ends here. Our own senders have no other NaN. */
  end(spelled: Uint8Array, timestamp_ms: number): void {
    this.push(spelled, timestamp_ms, STALE_NAN);
  }

  build(): SeriesBatch {
    const ends = new Uint32Array(this.#spelled.length);
    let end = 0;
    for (const [i, bytes] of this.#spelled.entries()) {
      end += bytes.length;
      ends[i] = end;
    }
    const values = Float64Array.from(this.#values);
    // The marker is written by its bits: a NaN that travels as a number may lose its payload.
    const bits = new BigUint64Array(values.buffer);
    for (const [i, value] of this.#values.entries()) if (Number.isNaN(value)) bits[i] = STALE_BITS;
    return {
      labels: Buffer.concat(this.#spelled),
      ends,
      timestamps: Float64Array.from(this.#timestamps),
      values,
    };
  }
}

const STALE_BITS = 0x7ff0000000000002n;
