import type { Clock } from "#core/clock.ts";
import { BatchBuilder, spell } from "../batch-builder.ts";
import type { MetricsEngine } from "../engine/engine.ts";

/** The series that say how asking a target went, by the names Prometheus uses where it has one. */
const NAMES = ["up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_body_too_large_total"] as const;
export type HealthReport = Record<(typeof NAMES)[number], number>;

/** Gathered for so long and then appended together. */
const GATHER_MS = 1000;

interface Parts {
  clock: Clock;
  engine(): Pick<MetricsEngine, "append">;
  onError(error: unknown): void;
}

/** The spelled series of one target; worth keeping as long as there is the target. */
export function healthSeries(labels: Readonly<Record<string, string>>): Uint8Array[] {
  return NAMES.map((name) => spell(name, labels));
}

/** Tells the engine how targets are. A thousand targets are one call a second, and not a thousand. */
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

  /** The target is gone, and so are its series. */
  end(org_id: string, series: readonly Uint8Array[], timestamp_ms: number): void {
    const builder = this.#builderOf(org_id);
    for (const spelled of series) builder.end(spelled, timestamp_ms);
  }

  /** What was gathered is still told. */
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

  /** Until nothing waits: whoever closes waits for what is under way, too. */
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
