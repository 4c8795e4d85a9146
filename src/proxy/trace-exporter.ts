import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { TracesSetting } from "#core/trace-settings.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { Span } from "./plane/trace/span.ts";
import { traceBody } from "./trace-wire.ts";

interface ExporterParts {
  setting: TracesSetting;
  region: string;
  host_id: string;
  clock: Clock;
  log: Log;
}

/** Statuses after which OTLP says to send again. */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];
const compress = promisify(gzip);
/** Interval of log lines about dropped spans. */
const TELL_MS = 60_000;

/**
 * Sends the workers' spans to the receiver of `HANGAR_TRACES_URL` (OTLP over HTTP, protobuf). What it does not take is
 * kept up to a limit; spans are never waited for and are lost when the process ends, as with other exporters.
 */
export class TraceExporter {
  readonly #parts: ExporterParts;
  readonly #closing = new AbortController();
  #queue: Span[] = [];
  #running: Promise<void> = Promise.resolve();
  /** Since the start. */
  readonly counts = { exported: 0, dropped: 0 };
  #failing = false;
  /** Dropped spans that the log has, and when it got them. */
  #told = { dropped: 0, at: Number.NEGATIVE_INFINITY };

  constructor(parts: ExporterParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Queues spans; `dropped` were left out before. */
  add(spans: readonly Span[], dropped: number): void {
    // What is sent again comes on top of a full queue.
    const room = Math.max(0, PROXY_LIMITS.spans_queued - this.#queue.length);
    for (const span of spans.slice(0, room)) this.#queue.push(span);
    this.counts.dropped += dropped + Math.max(0, spans.length - room);
  }

  /** Sends what is queued once more, without retries. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    while (this.#queue.length > 0 && (await this.#send(this.#queue.splice(0, PROXY_LIMITS.spans_sent))) === "sent");
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#closing;
    let pause_ms: number = PROXY_LIMITS.export_ms;
    while (!signal.aborted) {
      await clock.sleep(pause_ms, signal).catch(() => {});
      this.#tellDropped();
      if (signal.aborted || this.#queue.length === 0) continue;
      const batch = this.#queue.splice(0, PROXY_LIMITS.spans_sent);
      const outcome = await this.#send(batch);
      if (outcome === "again") {
        this.#queue.unshift(...batch);
        pause_ms = Math.min(Math.max(pause_ms, PROXY_LIMITS.export_ms) * 2, PROXY_LIMITS.export_retry_ms);
      } else pause_ms = this.#queue.length >= PROXY_LIMITS.spans_sent ? 0 : PROXY_LIMITS.export_ms;
    }
  }

  async #send(batch: readonly Span[]): Promise<"sent" | "again" | "refused"> {
    const { setting, region, host_id } = this.#parts;
    try {
      const response = await fetch(setting.url, {
        method: "POST",
        redirect: "manual",
        signal: AbortSignal.timeout(PROXY_LIMITS.export_timeout_ms),
        headers: {
          "user-agent": "hangar",
          ...setting.headers,
          "content-type": "application/x-protobuf",
          "content-encoding": "gzip",
        },
        body: await compress(traceBody(batch, { region, host_id }), { level: constants.Z_BEST_SPEED }),
      });
      await response.arrayBuffer();
      if (response.ok) {
        this.counts.exported += batch.length;
        this.#failing = false;
        return "sent";
      }
      this.#warn(`it answered ${response.status}`);
      if (RETRYABLE.includes(response.status)) return "again";
      this.counts.dropped += batch.length;
      return "refused";
    } catch (thrown) {
      const cause = thrown instanceof Error && thrown.cause instanceof Error ? `: ${thrown.cause.message}` : "";
      this.#warn(`${messageOf(thrown)}${cause}`);
      return "again";
    }
  }

  /** At most once a minute. */
  #tellDropped(): void {
    const { clock, log } = this.#parts;
    const dropped = this.counts.dropped - this.#told.dropped;
    const now = clock.monotonic();
    if (dropped === 0 || now - this.#told.at < TELL_MS) return;
    this.#told = { dropped: this.counts.dropped, at: now };
    log.warn(
      { dropped, exported: this.counts.exported },
      "traces or spans were dropped (limits traces_per_second, spans_queued)",
    );
  }

  /** Once per outage. */
  #warn(reason: string): void {
    if (this.#failing) return;
    this.#failing = true;
    const { log, setting } = this.#parts;
    log.warn({ reason, url: setting.url.origin }, "the receiver of traces does not take spans");
  }
}
