import type { Clock } from "#core/clock.ts";
import { BatchBuilder, spell } from "../batch-builder.ts";
import type { MetricsEngine } from "../engine/engine.ts";

/** Series about each scrape, with Prometheus' names where it has one. */
const NAMES = ["up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_body_too_large_total"] as const;
export type HealthReport = Record<(typeof NAMES)[number], number>;

/** Time for which reports are batched. */
const GATHER_MS = 1000;

interface Parts {
  clock: Clock;
  engine(): Pick<MetricsEngine, "append">;
  onError(error: unknown): void;
}

/** The encoded series of one target, reusable as long as the target exists. */
export function healthSeries(labels: Readonly<Record<string, string>>): Uint8Array[] {
  return NAMES.map((name) => spell(name, labels));
}

/** Appends the health of targets to the engine, batched: a thousand targets are one call a second, not a thousand. */
export class HealthReports {
  readonly #parts: Parts;
  readonly #waiting = new Map<string, BatchBuilder>();
  #sending: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  add(org_id: string, series: readonly Uint8Array[], timestamp_ms: number, report: HealthReport): void {
    const builder = this.#builderOf(org_id);
    for (const [i, name] of NAMES.entries()) builder.push(series[i] ?? EMPTY, timestamp_ms, report[name]);
  }

  /** Ends the series of a removed target. */
  end(org_id: string, series: readonly Uint8Array[], timestamp_ms: number): void {
    const builder = this.#builderOf(org_id);
    for (const spelled of series) builder.end(spelled, timestamp_ms);
  }

  /** Appends what is batched, then resolves. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#sending;
  }

  #builderOf(org_id: string): BatchBuilder {
    let builder = this.#waiting.get(org_id);
    if (!builder) {
      builder = new BatchBuilder();
      this.#waiting.set(org_id, builder);
    }
    this.#sending ??= this.#send();
    return builder;
  }

  /** Sends until nothing is batched; `close` also waits for calls in progress. */
  async #send(): Promise<void> {
    try {
      while (this.#waiting.size > 0) {
        await this.#parts.clock.sleep(GATHER_MS, this.#closing.signal).catch(() => undefined);
        const gathered = [...this.#waiting];
        this.#waiting.clear();
        for (const [org_id, builder] of gathered) {
          await this.#parts.engine().append(org_id, builder.build()).catch(this.#parts.onError);
        }
      }
    } finally {
      this.#sending = undefined;
    }
  }
}

const EMPTY = new Uint8Array(0);
