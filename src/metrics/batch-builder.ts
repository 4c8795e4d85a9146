import type { FloatHistogram } from "./histogram/histogram.ts";
import { STALE_NAN } from "./source.ts";
import { encodeLabels } from "./tsdb/index/labels.ts";
import type { SeriesBatch } from "./tsdb/ingest/series-batch.ts";

/** Encodes a series of the platform for a batch; a label without a value is omitted. */
export function spell(name: string, labels: Readonly<Record<string, string>>): Uint8Array {
  const pairs = Object.entries({ ...labels, __name__: name }).filter(([, value]) => value !== "");
  return encodeLabels(pairs.sort(([a], [b]) => (a < b ? -1 : 1)).flat());
}

/** Collects samples of our own senders, whose series are already encoded (see `spell`), into one batch. */
export class BatchBuilder {
  #labels = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;
  readonly #ends: number[] = [];
  readonly #timestamps: number[] = [];
  readonly #values: number[] = [];
  /** Places of NaNs that are values. */
  readonly #nans = new Set<number>();
  readonly #natives: { sample: number; histogram: FloatHistogram }[] = [];

  push(spelled: Uint8Array, timestamp_ms: number, value: number): void {
    this.#write(spelled);
    this.#finish(timestamp_ms, value);
  }

  /** The same for a series encoded in pieces. */
  pushPieces(pieces: Iterable<Uint8Array>, timestamp_ms: number, value: number): void {
    for (const piece of pieces) this.#write(piece);
    this.#finish(timestamp_ms, value);
  }

  /** Adds a sample of another sender, whose NaN is a value and ends nothing. */
  pushValue(spelled: Uint8Array, timestamp_ms: number, value: number): void {
    if (Number.isNaN(value)) this.#nans.add(this.#values.length);
    this.push(spelled, timestamp_ms, value);
  }

  /** Adds a native histogram. */
  pushNative(spelled: Uint8Array, timestamp_ms: number, histogram: FloatHistogram): void {
    this.#natives.push({ sample: this.#values.length, histogram });
    this.push(spelled, timestamp_ms, 0);
  }

  /** Adds a staleness marker. Our own senders have no other NaN. */
  end(spelled: Uint8Array, timestamp_ms: number): void {
    this.push(spelled, timestamp_ms, STALE_NAN);
  }

  build(): SeriesBatch {
    const values = Float64Array.from(this.#values);
    // Written as bits: a NaN passed as a number may lose its payload.
    const bits = new BigUint64Array(values.buffer);
    for (const [i, value] of this.#values.entries())
      if (Number.isNaN(value)) bits[i] = this.#nans.has(i) ? NAN_BITS : STALE_BITS;
    return {
      labels: this.#labels.subarray(0, this.#at),
      ends: Uint32Array.from(this.#ends),
      timestamps: Float64Array.from(this.#timestamps),
      values,
      ...(this.#natives.length > 0 ? { natives: this.#natives } : {}),
    };
  }

  #write(bytes: Uint8Array): void {
    const end = this.#at + bytes.length;
    if (end > this.#labels.length) {
      const larger = Buffer.allocUnsafe(Math.max(end, this.#labels.length * 2));
      larger.set(this.#labels.subarray(0, this.#at));
      this.#labels = larger;
    }
    this.#labels.set(bytes, this.#at);
    this.#at = end;
  }

  #finish(timestamp_ms: number, value: number): void {
    this.#ends.push(this.#at);
    this.#timestamps.push(timestamp_ms);
    this.#values.push(value);
  }
}

const FIRST_BYTES = 1024;
const STALE_BITS = 0x7ff0000000000002n;
/** Prometheus' ordinary NaN. */
const NAN_BITS = 0x7ff8000000000001n;
