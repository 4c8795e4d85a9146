import type { Clock } from "#core/clock.ts";
import type { Matcher, SampleSource } from "../source.ts";
import { federate } from "./federate.ts";
import { MetadataIndex } from "./index/metadata-index.ts";
import { MetadataQueries } from "./index/metadata-queries.ts";
import { type StatusRequest, statusOf, type TsdbStatus } from "./index/status.ts";
import type { ExpositionOptions } from "./ingest/exposition.ts";
import { Importer, type ImportResult } from "./ingest/importer.ts";
import { BadWire } from "./ingest/protobuf.ts";
import { importRemoteWrite } from "./ingest/remote-write.ts";
import { importScraped } from "./ingest/scraped.ts";
import { importSeriesBatch, type SeriesBatch } from "./ingest/series-batch.ts";
import type { TsdbLimits } from "./limits.ts";
import { Partition } from "./partition.ts";

/** All operations on an org's metrics, in the thread that owns them. */
export class OrgDatabase {
  readonly partition: Partition;
  readonly metadata = new MetadataIndex();
  readonly queries: MetadataQueries;
  readonly #importer: Importer;
  /** Time of last use. */
  used_at: number;

  constructor(dir: string, clock: Clock, limits: TsdbLimits) {
    this.partition = new Partition(dir, clock, limits);
    this.#importer = new Importer(this.partition);
    this.queries = new MetadataQueries(this.partition);
    this.used_at = clock.monotonic();
  }

  get source(): SampleSource {
    return this.partition.source;
  }

  append(batch: SeriesBatch): ImportResult {
    return importSeriesBatch(this.#importer, batch);
  }

  /** Throws BadWire when the body is too large; invalid lines are in the result. */
  importText(bytes: Uint8Array, options: ExpositionOptions): ImportResult {
    const most = this.partition.limits.import_bytes;
    if (bytes.length > most) throw new BadWire(`the text is longer than ${most} bytes (import_bytes)`, most);
    return importScraped(this.#importer, bytes, { ...options, ...this.metadata.due(options.target) });
  }

  importRemoteWrite(body: Uint8Array): ImportResult {
    return importRemoteWrite(this.#importer, body, this.partition.limits.import_bytes);
  }

  /** Ends the series of a removed or silent target. */
  endTarget(target: string, timestamp_ms: number): ImportResult {
    this.#importer.begin();
    this.#importer.markMissing(target, timestamp_ms);
    return this.#importer.end();
  }

  status(request: StatusRequest): TsdbStatus {
    return statusOf(this.partition, request);
  }

  federate(selector: readonly (readonly Matcher[])[], at_ms: number, lookback_ms: number): string {
    return federate(this.source, selector, at_ms, lookback_ms);
  }
}
