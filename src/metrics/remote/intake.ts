import type { Clock } from "#core/clock.ts";
import type { Labels } from "../source.ts";
import { ByteWriter } from "../tsdb/bytes.ts";
import type { Batch } from "../tsdb/head.ts";
import { encodeLabels, labelValue } from "../tsdb/index/labels.ts";
import type { DropReason } from "../tsdb/ingest/admission.ts";
import type { Intake } from "../tsdb/ingest/importer.ts";
import type { TsdbLimits } from "../tsdb/limits.ts";
import { REMOTE_LIMITS } from "./limits.ts";

const FIELD_SERIES = 0x0a;
const FIELD_SAMPLE = 0x12;
const FIELD_VALUE = 0x09;
const FIELD_TIME = 0x10;

interface IntakeParts {
  limits: TsdbLimits;
  clock: Clock;
  /** The labels that identify the org at the engine; senders may not set them. */
  added: Labels;
  put(series: Uint8Array): void;
}

/** Encodes one org's samples for the engine: each becomes a series of a write request. */
export class RemoteIntake implements Intake {
  readonly limits: TsdbLimits;
  readonly takes_histograms = false;
  generation = 1;
  readonly dropped_samples = new Map<DropReason, number>();
  readonly #parts: IntakeParts;
  /** By number: the labels as they are sent. */
  #spelled: Uint8Array[] = [];
  #refs = new Map<string, number>();
  #byApp = new Map<string, number>();
  readonly #out = new ByteWriter(1 << 16);

  #learned_at: number;

  constructor(parts: IntakeParts) {
    this.limits = parts.limits;
    this.#parts = parts;
    this.#learned_at = parts.clock.monotonic();
  }

  series(labels: Labels, own = false): number | undefined {
    const key = labels.join("\0");
    const known = this.#refs.get(key);
    if (known !== undefined) return known;
    const app = labelValue(labels, "app");
    const ofApp = this.#byApp.get(app) ?? 0;
    if (!own && ofApp >= this.limits.series_per_app) {
      this.dropped("series_per_app");
      return undefined;
    }
    if (!own) this.#byApp.set(app, ofApp + 1);
    const ref = this.#spelled.push(encodeLabels(this.#withAdded(labels))) - 1;
    this.#refs.set(key, ref);
    return ref;
  }

  dropped(reason: DropReason): void {
    this.dropped_samples.set(reason, (this.dropped_samples.get(reason) ?? 0) + 1);
  }

  append(batch: Batch): number {
    const { refs, timestamps, bits, length } = batch;
    const out = this.#out;
    out.reset();
    let taken = 0;
    for (let i = 0; i < length; i++) {
      const spelled = this.#spelled[refs[i] as number] as Uint8Array;
      const time = timestamps[i] as number;
      if (!Number.isSafeInteger(time) || time < 0) {
        this.dropped("bad_timestamp");
        continue;
      }
      taken++;
      // A value is its tag and 8 bytes, a time its tag and a number.
      const sample_bytes = 9 + 1 + varintBytes(time);
      out.byte(FIELD_SERIES);
      out.varint(spelled.length + 2 + sample_bytes);
      out.raw(spelled);
      out.byte(FIELD_SAMPLE);
      out.varint(sample_bytes);
      out.byte(FIELD_VALUE);
      putU32(out, bits[2 * i] as number);
      putU32(out, bits[2 * i + 1] as number);
      out.byte(FIELD_TIME);
      out.varint(time);
    }
    if (taken > 0) this.#parts.put(out.view());
    this.#forget();
    return taken;
  }

  #withAdded(labels: Labels): Labels {
    const own = new Map<string, string>();
    for (const list of [labels, this.#parts.added]) {
      for (let i = 0; i < list.length; i += 2) own.set(list[i] ?? "", list[i + 1] ?? "");
    }
    return [...own].flat();
  }

  /** Forgets all series; active ones are added again, so series of an app's replaced machines do not count for ever. */
  #forget(): void {
    const now = this.#parts.clock.monotonic();
    const { series_known, series_known_ms } = REMOTE_LIMITS;
    if (this.#spelled.length < series_known && now - this.#learned_at < series_known_ms) return;
    this.#learned_at = now;
    this.#spelled = [];
    this.#refs = new Map();
    this.#byApp = new Map();
    this.generation++;
  }
}

function putU32(out: ByteWriter, value: number): void {
  for (let shift = 0; shift < 32; shift += 8) out.byte((value >>> shift) & 255);
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}
