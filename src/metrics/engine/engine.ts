import { assert } from "#core/assert.ts";
import type { MetricMetadata } from "../tsdb/index/metadata-index.ts";
import type { Scope } from "../tsdb/index/scope.ts";
import type { StatusRequest, TsdbStatus } from "../tsdb/index/status.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import type { QueryRequest } from "./evaluator.ts";
import type { CrossedError, FederateRequest, OrgText, TextOptions } from "./protocol.ts";
import { type EngineOptions, toError, WorkerLink } from "./worker-link.ts";

/** Results of the texts, in order, and their memory. */
export interface ImportedTexts {
  outcomes: PromiseSettledResult<ImportResult>[];
  bytes: Uint8Array;
}

/**
 * The metrics engine, used by the rest of the platform. It runs in a worker thread; see WorkerLink for order, limits
 * and crashes. Writes resolve when the samples are readable; they are durable within a second, or when `flush`
 * resolves. JSON results are bytes, ready to be sent.
 */
export interface MetricsEngine {
  append(org: string, batch: SeriesBatch): Promise<ImportResult>;
  /** Imports exposition text of a target or an import; invalid lines are in the result. */
  importText(org: string, bytes: Uint8Array, options: TextOptions): Promise<ImportResult>;
  /** Imports many texts in one message. Each succeeds or fails by itself; their memory is transferred, and returned. */
  importTexts(bytes: Uint8Array, texts: readonly OrgText[]): Promise<ImportedTexts>;
  /** Imports a snappy-compressed remote write 0.1.0 body. */
  importRemoteWrite(org: string, body: Uint8Array): Promise<ImportResult>;
  /** Ends the series of a removed or silent target at this time. */
  endTarget(org: string, target: string, timestamp_ms: number): Promise<ImportResult>;

  /** An instant query at `end_ms`, or a range query with a step. Aborting `signal` stops it. */
  query(org: string, request: QueryRequest, signal?: AbortSignal): Promise<Uint8Array>;
  /** A JSON array of label objects. */
  series(org: string, scope: Scope, signal?: AbortSignal): Promise<Uint8Array>;
  labelNames(org: string, scope: Scope, signal?: AbortSignal): Promise<string[]>;
  labelValues(org: string, name: string, scope: Scope, signal?: AbortSignal): Promise<string[]>;
  /** Metadata by metric, as senders reported it. */
  metadata(org: string): Promise<[string, MetricMetadata][]>;
  status(org: string, request?: StatusRequest): Promise<TsdbStatus>;
  /** The newest samples as Prometheus text. */
  federate(org: string, request: FederateRequest, signal?: AbortSignal): Promise<string>;

  /** Resolves when everything appended before, of one org or of all, is durable. */
  flush(org?: string): Promise<void>;
  /** Compacts the head into blocks and each day into one block. For tools; also happens automatically. */
  compact(org: string): Promise<void>;
  /** Deletes the org's metrics. */
  dropOrg(org: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the worker; failures of its start are reported by every call. */
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
