import type { Matcher, SampleSource } from "../source.ts";
import type { MetricMetadata } from "../tsdb/index/metadata-index.ts";
import type { Scope } from "../tsdb/index/scope.ts";
import type { StatusRequest, TsdbStatus } from "../tsdb/index/status.ts";
import type { ExpositionOptions } from "../tsdb/ingest/exposition.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import type { TsdbLimits } from "../tsdb/limits.ts";
import type { QueryRequest } from "./evaluator.ts";

/** Messages between the main thread and the metrics worker, as plain data. */

/** Exposition options without the callback, which cannot be transferred. */
export type TextOptions = Omit<ExpositionOptions, "onMetadata">;

/** The text of one target or import: its org, and its range in the buffer. */
export interface OrgText {
  org: string;
  start: number;
  end: number;
  options: TextOptions;
}

export interface FederateRequest {
  selector: readonly (readonly Matcher[])[];
  at_ms: number;
  lookback_ms: number;
}

/** Arguments and results by method. */
export interface Calls {
  append: { args: [org: string, batch: SeriesBatch]; answer: ImportResult };
  /** One result per text, in order; the bytes are returned for reuse. */
  importTexts: {
    args: [bytes: Uint8Array, texts: readonly OrgText[]];
    answer: { outcomes: (ImportResult | CrossedError)[]; bytes: Uint8Array };
  };
  importRemoteWrite: { args: [org: string, body: Uint8Array]; answer: ImportResult };
  endTarget: { args: [org: string, target: string, timestamp_ms: number]; answer: ImportResult };
  query: { args: [org: string, request: QueryRequest]; answer: Uint8Array };
  series: { args: [org: string, scope: Scope]; answer: Uint8Array };
  /** JSON arrays: one string is transferred in half the time of a list. */
  labelNames: { args: [org: string, scope: Scope]; answer: string };
  labelValues: { args: [org: string, name: string, scope: Scope]; answer: string };
  metadata: { args: [org: string]; answer: [string, MetricMetadata][] };
  status: { args: [org: string, request: StatusRequest]; answer: TsdbStatus };
  federate: { args: [org: string, request: FederateRequest]; answer: string };
  flush: { args: [org?: string]; answer: undefined };
  compact: { args: [org: string]; answer: undefined };
  dropOrg: { args: [org: string]; answer: undefined };
  close: { args: []; answer: undefined };
}

export type Method = keyof Calls;

export interface Request<M extends Method = Method> {
  id: number;
  method: M;
  args: Calls[M]["args"];
  /** Index of the shared flag that cancels the call. */
  flag: number;
}

/** An error as plain data. */
export interface CrossedError {
  name: string;
  message: string;
  /** A full disk may be temporary, so the caller learns of it. */
  full?: boolean;
  details?: unknown;
}

export type Reply = { id: number; answer: unknown } | { id: number; error: CrossedError };

export interface WorkerSettings {
  dir: string;
  limits: Partial<TsdbLimits>;
  maintain_ms: number;
  /** Added to the wall clock, for tests. */
  clock_offset_ms: number;
  /** Module with an `evaluator`. */
  evaluator_url: string;
  /** One 32-bit flag per possible call. */
  flags: SharedArrayBuffer;
}

/** An empty source, for orgs without metrics. */
export const EMPTY_SOURCE: SampleSource = {
  select: () => Object.assign([], { count: 0 }),
};
