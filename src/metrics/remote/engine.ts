import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { ImportedTexts, MetricsEngine } from "../engine/engine.ts";
import type { QueryRequest } from "../engine/evaluator.ts";
import type { FederateRequest, OrgText, TextOptions } from "../engine/protocol.ts";
import { truncateResponse } from "../truncate.ts";
import { StorageError } from "../tsdb/files.ts";
import { MetadataIndex, type MetricMetadata } from "../tsdb/index/metadata-index.ts";
import type { Scope } from "../tsdb/index/scope.ts";
import { EMPTY_STATUS, type StatusRequest, type TsdbStatus } from "../tsdb/index/status.ts";
import { Importer, type ImportResult } from "../tsdb/ingest/importer.ts";
import { BadWire } from "../tsdb/ingest/protobuf.ts";
import { importRemoteWrite } from "../tsdb/ingest/remote-write.ts";
import { importScraped } from "../tsdb/ingest/scraped.ts";
import { importSeriesBatch, type SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { TSDB_LIMITS } from "../tsdb/limits.ts";
import type { RemoteAddress } from "./address.ts";
import { RemoteClient, type Tenant } from "./client.ts";
import { narrowedQuery, narrowedSelectors, ORG_LABEL } from "./enforce.ts";
import { RemoteIntake } from "./intake.ts";
import { Sender } from "./sender.ts";

export interface RemoteEngineOptions {
  /** Directory of the samples queued for the engine. */
  dir: string;
  address: RemoteAddress;
  clock: Clock;
  log: Log;
  /** The number of an organization, its tenant in a cluster. */
  tenant(org_id: string): Promise<number>;
}

export interface RemoteEngine extends MetricsEngine {
  /** Resolves when the engine has been sent everything appended before. */
  drained(): Promise<void>;
}

interface Org {
  importer: Importer;
  intake: RemoteIntake;
  metadata: MetadataIndex;
}

export function openRemoteEngine(options: RemoteEngineOptions): RemoteEngine {
  return new VictoriaEngine(options);
}

type Field = [name: string, value: string];

/** A MetricsEngine on VictoriaMetrics: samples and queries go there. See RemoteClient for the isolation of orgs. */
class VictoriaEngine implements RemoteEngine {
  readonly #options: RemoteEngineOptions;
  readonly #sender: Sender;
  readonly #client: RemoteClient;
  readonly #orgs = new Map<string, Org>();

  constructor(options: RemoteEngineOptions) {
    const { dir, address, clock, log } = options;
    this.#options = options;
    this.#sender = new Sender({ dir: join(dir, "remote-queue"), address, clock, log });
    this.#client = new RemoteClient(address);
  }

  async append(org_id: string, batch: SeriesBatch): Promise<ImportResult> {
    return await this.#take(org_id, ({ importer }) => importSeriesBatch(importer, batch));
  }

  async importText(org_id: string, bytes: Uint8Array, options: TextOptions): Promise<ImportResult> {
    const most = TSDB_LIMITS.import_bytes;
    return await this.#take(org_id, ({ importer, metadata }) => {
      if (bytes.length > most) throw new BadWire(`the text is longer than ${most} bytes (import_bytes)`, most);
      return importScraped(importer, bytes, { ...options, ...metadata.due(options.target) });
    });
  }

  async importTexts(bytes: Uint8Array, texts: readonly OrgText[]): Promise<ImportedTexts> {
    const outcomes = await Promise.allSettled(
      texts.map(({ org, start, end, options }) => this.importText(org, bytes.subarray(start, end), options)),
    );
    return { outcomes, bytes };
  }

  async importRemoteWrite(org_id: string, body: Uint8Array): Promise<ImportResult> {
    return await this.#take(org_id, ({ importer }) => importRemoteWrite(importer, body, TSDB_LIMITS.import_bytes));
  }

  async endTarget(org_id: string, target: string, timestamp_ms: number): Promise<ImportResult> {
    return await this.#take(org_id, ({ importer }) => {
      importer.begin();
      importer.markMissing(target, timestamp_ms);
      return importer.end();
    });
  }

  async query(org_id: string, request: QueryRequest, signal?: AbortSignal): Promise<Uint8Array> {
    const { path, fields } = queryOf(request, this.#labelled(org_id));
    const answer = await this.#client.query(await this.#tenantOf(org_id), path, fields, signal);
    return Buffer.from(truncateResponse(answer, request.limit));
  }

  async series(org_id: string, scope: Scope, signal?: AbortSignal): Promise<Uint8Array> {
    return Buffer.from(JSON.stringify(await this.#list(org_id, "/api/v1/series", scope, signal)));
  }

  async labelNames(org_id: string, scope: Scope, signal?: AbortSignal): Promise<string[]> {
    const names = await this.#list<string>(org_id, "/api/v1/labels", { ...scope, limit: 0 }, signal);
    const shown = names.filter((name) => name !== ORG_LABEL);
    return scope.limit ? shown.slice(0, scope.limit) : shown;
  }

  async labelValues(org_id: string, name: string, scope: Scope, signal?: AbortSignal): Promise<string[]> {
    if (name === ORG_LABEL) return [];
    return await this.#list<string>(org_id, `/api/v1/label/${encodeURIComponent(name)}/values`, scope, signal);
  }

  async metadata(org_id: string): Promise<[string, MetricMetadata][]> {
    return this.#orgs.get(org_id)?.metadata.list ?? [];
  }

  async status(org_id: string, request: StatusRequest = {}): Promise<TsdbStatus> {
    const fields: Field[] = [
      ["topN", String(request.top ?? 10)],
      ...(request.focus_label ? [["focusLabel", request.focus_label] as Field] : []),
      ...this.#matches(org_id, request.selector),
    ];
    const status = await this.#client.data<Partial<TsdbStatus>>(
      await this.#tenantOf(org_id),
      "/api/v1/status/tsdb",
      fields,
    );
    return statusOf(status, this.#orgs.get(org_id)?.intake, this.#sender);
  }

  async federate(org_id: string, { selector }: FederateRequest, signal?: AbortSignal): Promise<string> {
    return await this.#client.query(await this.#tenantOf(org_id), "/federate", this.#matches(org_id, selector), signal);
  }

  async flush(): Promise<void> {
    this.#sender.sync();
  }

  /** The engine does that by itself. */
  async compact(): Promise<void> {}

  async dropOrg(org_id: string): Promise<void> {
    this.#orgs.delete(org_id);
    await this.#client.remove(await this.#tenantOf(org_id));
  }

  async drained(): Promise<void> {
    await this.#sender.drained();
  }

  async close(): Promise<void> {
    await this.#sender.close();
  }

  async #tenantOf(org_id: string): Promise<Tenant> {
    const { address, tenant } = this.#options;
    return { org_id, tenant: address.tenants ? await tenant(org_id) : 0 };
  }

  /** The label's owner, where there is a label. */
  #labelled(org_id: string): string | undefined {
    return this.#options.address.tenants ? undefined : org_id;
  }

  async #orgOf(org_id: string): Promise<Org> {
    const { tenant } = await this.#tenantOf(org_id);
    let org = this.#orgs.get(org_id);
    if (!org) {
      const added = this.#labelled(org_id) === undefined ? [] : [ORG_LABEL, org_id];
      const { clock } = this.#options;
      const put = (series: Uint8Array): void => this.#sender.put(tenant, series);
      const intake = new RemoteIntake({ limits: TSDB_LIMITS, clock, added, put });
      org = { intake, importer: new Importer(intake), metadata: new MetadataIndex() };
      this.#orgs.set(org_id, org);
    }
    return org;
  }

  /** Errors of an import come as callers of the embedded engine get them. */
  async #take(org_id: string, work: (org: Org) => ImportResult): Promise<ImportResult> {
    const org = await this.#orgOf(org_id);
    try {
      return work(org);
    } catch (thrown) {
      if (thrown instanceof BadWire) throw new ApiError("invalid_request", thrown.message);
      if (thrown instanceof StorageError) {
        throw new ApiError(thrown.full ? "storage_full" : "storage_failed", thrown.message, { cause: thrown });
      }
      throw thrown;
    }
  }

  #matches(org_id: string, selector: Scope["selector"]): Field[] {
    return narrowedSelectors(selector, this.#labelled(org_id)).map((match): Field => ["match[]", match]);
  }

  async #list<T>(org_id: string, path: string, scope: Scope, signal: AbortSignal | undefined): Promise<T[]> {
    const fields: Field[] = [
      ...this.#matches(org_id, scope.selector),
      ["start", seconds(scope.start_ms)],
      ["end", seconds(scope.end_ms)],
    ];
    const list = await this.#client.data<T[]>(await this.#tenantOf(org_id), path, fields, signal);
    // The engine may know no limit, or take it for a hint.
    return scope.limit ? list.slice(0, scope.limit) : list;
  }
}

const seconds = (ms: number): string => String(ms / 1000);

function queryOf(request: QueryRequest, org_id: string | undefined): { path: string; fields: Field[] } {
  const { query, start_ms, end_ms, step_ms, dialect, limits } = request;
  if (dialect === "promql") {
    fail(
      "invalid_request",
      "dialect=promql is supported only by the embedded engine; with metrics_url queries are MetricsQL",
    );
  }
  const fields: Field[] = [
    ["query", narrowedQuery(query, org_id)],
    // Keeps the requested grid and shows the newest samples: the platform knows when its own are complete.
    ["nocache", "1"],
    ["latency_offset", "1ms"],
    ...(limits?.time_ms ? [["timeout", `${limits.time_ms}ms`] as Field] : []),
  ];
  if (step_ms === undefined) return { path: "/api/v1/query", fields: [...fields, ["time", seconds(end_ms)]] };
  const grid: Field[] = [
    ["start", seconds(start_ms)],
    ["end", seconds(end_ms)],
    ["step", seconds(step_ms)],
  ];
  return { path: "/api/v1/query_range", fields: [...fields, ...grid] };
}

/** The engine's status of an org, with the samples that are queued for it here. */
function statusOf(status: Partial<TsdbStatus>, intake: RemoteIntake | undefined, sender: Sender): TsdbStatus {
  const without = (counts: TsdbStatus["seriesCountByLabelName"] | undefined) =>
    (counts ?? []).filter(({ name }) => name !== ORG_LABEL && !name.startsWith(`${ORG_LABEL}=`));
  const dropped = Object.fromEntries(intake?.dropped_samples ?? []);
  return {
    ...EMPTY_STATUS,
    totalSeries: status.totalSeries ?? 0,
    totalLabelValuePairs: status.totalLabelValuePairs ?? 0,
    seriesCountByMetricName: without(status.seriesCountByMetricName),
    seriesCountByLabelName: without(status.seriesCountByLabelName),
    seriesCountByFocusLabelValue: without(status.seriesCountByFocusLabelValue),
    seriesCountByLabelValuePair: without(status.seriesCountByLabelValuePair),
    labelValueCountByLabelName: without(status.labelValueCountByLabelName),
    storage: {
      ...EMPTY_STATUS.storage,
      wal_bytes: sender.queued_bytes,
      dropped_samples: dropped,
      ...(sender.failure ? { failure: `samples wait for the metrics engine: ${sender.failure}` } : {}),
    },
  };
}
