import { assert } from "#core/assert.ts";
import type { MetricMetadata } from "../tsdb/index/metadata-index.ts";
import type { Scope } from "../tsdb/index/scope.ts";
import type { StatusRequest, TsdbStatus } from "../tsdb/index/status.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import type { QueryRequest } from "./evaluator.ts";
import type { CrossedError, FederateRequest, OrgText, TextOptions } from "./protocol.ts";
import { type EngineOptions, toError, WorkerLink } from "./worker-link.ts";

/** What became of each text, in their order, and the memory they lay in. */
export interface ImportedTexts {
  outcomes: PromiseSettledResult<ImportResult>[];
  bytes: Uint8Array;
}

/**
 * The metrics of the whole program: everything else sees them through this. The work is done in a worker
 * thread; see WorkerLink for order, limits and what happens when it ends.
 *
 * Writes resolve when the samples can be read; they are on the disk within a second, or when `flush` resolves.
 * Answers that are JSON come as bytes, ready to be sent.
 */
export interface MetricsEngine {
  append(org: string, batch: SeriesBatch): Promise<ImportResult>;
  /** Exposition text of a target or an import; lines that are wrong are in the result. */
  importText(org: string, bytes: Uint8Array, options: TextOptions): Promise<ImportResult>;
  /**
   * Many at once, which costs the way to the engine once. Each succeeds or fails for itself; the memory they lie in is
   * handed over, and comes back.
   */
  importTexts(bytes: Uint8Array, texts: readonly OrgText[]): Promise<ImportedTexts>;
  /** A snappy-packed remote write 0.1.0 body. */
  importRemoteWrite(org: string, body: Uint8Array): Promise<ImportResult>;
  /** The target is gone or silent: its series end at this time. */
  endTarget(org: string, target: string, timestamp_ms: number): Promise<ImportResult>;

  /** At one time (`end_ms`), or on a grid when it has a step. Aborting `signal` stops the evaluation. */
  query(org: string, request: QueryRequest, signal?: AbortSignal): Promise<Uint8Array>;
  /** A JSON array of label objects. */
  series(org: string, scope: Scope, signal?: AbortSignal): Promise<Uint8Array>;
  labelNames(org: string, scope: Scope, signal?: AbortSignal): Promise<string[]>;
  labelValues(org: string, name: string, scope: Scope, signal?: AbortSignal): Promise<string[]>;
  /** Metric → what its senders said about it. */
  metadata(org: string): Promise<[string, MetricMetadata][]>;
  status(org: string, request?: StatusRequest): Promise<TsdbStatus>;
  /** Prometheus text of the newest samples. */
  federate(org: string, request: FederateRequest, signal?: AbortSignal): Promise<string>;

  /** Everything appended before, to one org or to all, is on the disk when it resolves. */
  flush(org?: string): Promise<void>;
  /** Everything in memory becomes blocks and every day one block. For tools; it happens by itself too. */
  compact(org: string): Promise<void>;
  /** The org was deleted: so are its metrics. */
  dropOrg(org: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the worker; problems of its start, and that another process has the folder, are told by every call. */
export function openMetricsEngine(options: EngineOptions): MetricsEngine {
  const link = new WorkerLink(options);
  let closed: Promise<void> | undefined;
  return {
    append: (...args) => link.call("append", args),
    importText: async (org, bytes, options) => {
      const text = { org, start: 0, end: bytes.length, options };
      const { outcomes } = await link.call("importTexts", [bytes, [text]]);
      return resultOf(outcomes[0]);
    },
    importTexts: async (given, texts) => {
      const { outcomes, bytes } = await link.call("importTexts", [given, texts]);
      return { outcomes: await Promise.allSettled(outcomes.map(async (outcome) => resultOf(outcome))), bytes };
    },
    importRemoteWrite: (...args) => link.call("importRemoteWrite", args),
    endTarget: (...args) => link.call("endTarget", args),
    query: (org, request, signal) => link.call("query", [org, request], signal),
    series: (org, scope, signal) => link.call("series", [org, scope], signal),
    labelNames: async (org, scope, signal) => listOf(await link.call("labelNames", [org, scope], signal)),
    labelValues: async (org, name, scope, signal) => listOf(await link.call("labelValues", [org, name, scope], signal)),
    metadata: (...args) => link.call("metadata", args),
    status: (org, request = {}) => link.call("status", [org, request]),
    federate: (org, request, signal) => link.call("federate", [org, request], signal),
    flush: (org) => link.call("flush", org === undefined ? [] : [org]),
    compact: (...args) => link.call("compact", args),
    dropOrg: (...args) => link.call("dropOrg", args),
    close: () => {
      closed ??= link.close();
      return closed;
    },
  };
}

const listOf = (json: string): string[] => JSON.parse(json) as string[];

function resultOf(outcome: ImportResult | CrossedError | undefined): ImportResult {
  assert(outcome, "every text has an outcome");
  if ("samples" in outcome) return outcome;
  throw toError(outcome);
}
