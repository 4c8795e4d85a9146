import type { Matcher, SampleSource } from "../source.ts";
import type { MetricMetadata } from "../tsdb/index/metadata-index.ts";
import type { Scope } from "../tsdb/index/scope.ts";
import type { StatusRequest, TsdbStatus } from "../tsdb/index/status.ts";
import type { ExpositionOptions } from "../tsdb/ingest/exposition.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import type { TsdbLimits } from "../tsdb/limits.ts";
import type { QueryRequest } from "./evaluator.ts";

/** What crosses between the program and the metrics worker. Everything here is plain data. */

/** Exposition options without the callback: functions do not cross. */
export type TextOptions = Omit<ExpositionOptions, "onMetadata">;

/** The text of one target or import: whose it is, and where it lies among others. */
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

/** Method → arguments and answer. */
export interface Calls {
  append: { args: [org: string, batch: SeriesBatch]; answer: ImportResult };
  /** Each has an outcome of its own, in the same order; the bytes come back, to be used again. */
  importTexts: {
    args: [bytes: Uint8Array, texts: readonly OrgText[]];
    answer: { outcomes: (ImportResult | CrossedError)[]; bytes: Uint8Array };
  };
  importRemoteWrite: { args: [org: string, body: Uint8Array]; answer: ImportResult };
  endTarget: { args: [org: string, target: string, timestamp_ms: number]; answer: ImportResult };
  query: { args: [org: string, request: QueryRequest]; answer: Uint8Array };
  series: { args: [org: string, scope: Scope]; answer: Uint8Array };
  /** JSON arrays: one text crosses and is read in half the time that a list of texts takes. */
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
  /** Which flag of the shared ones says that nobody wants the answer any more. */
  flag: number;
}

/** An error as it crosses: class instances do not. */
export interface CrossedError {
  name: string;
  message: string;
  /** Full disks can pass; the caller is told so. */
  full?: boolean;
  details?: unknown;
}

export type Reply = { id: number; answer: unknown } | { id: number; error: CrossedError };

export interface WorkerSettings {
  dir: string;
  limits: Partial<TsdbLimits>;
  maintain_ms: number;
  /** Added to the wall clock, for tests of what time brings. */
  clock_offset_ms: number;
  /** Module with an `evaluator`. */
  evaluator_url: string;
  /** One 32-bit flag per call that may be under way. */
  flags: SharedArrayBuffer;
}

/** A source without anything, for orgs that have no metrics yet. */
export const EMPTY_SOURCE: SampleSource = {
  select: () => Object.assign([], { count: 0 }),
};
