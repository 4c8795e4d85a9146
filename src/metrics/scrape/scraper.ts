import { createHash } from "node:crypto";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Address } from "#core/dial.ts";
import type { Log } from "#core/log.ts";
import type { MeasuredMachine } from "../builtin/sources.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import type { Labels } from "../source.ts";
import { onGrid } from "../ticks.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import { type Allowance, Budget } from "./budget.ts";
import { ScrapeFailure } from "./failure.ts";
import { type Fetched, KeepAliveConnection } from "./fetch.ts";
import { HealthReports, healthSeries } from "./health.ts";
import { ImportBatcher } from "./import-batcher.ts";
import { SCRAPE_LIMITS } from "./limits.ts";

export interface ScraperParts {
  clock: Clock;
  log: Log;
  engine(): Pick<MetricsEngine, "append" | "importTexts" | "endTarget">;
  /** The address of a machine's port; undefined when this driver's machines cannot be reached. */
  reach(machine: MeasuredMachine, port: number): Address | undefined;
}

/** The state of a target, for its owner. */
export interface TargetState {
  machine: MeasuredMachine;
  url: string;
  health: "up" | "down" | "unknown";
  /** A scrape is in progress. */
  scraping: boolean;
  last_error: string;
  last_scrape_ms: number | undefined;
  last_duration_ms: number;
  samples: number;
}

interface Target extends TargetState {
  /** Undefined when it cannot be reached. */
  connection: KeepAliveConnection | undefined;
  labels: Labels;
  series: readonly Uint8Array[];
  too_large: number;
  stop: AbortController;
  running: Promise<void>;
}

/**
 * Scrapes every machine that has a metrics endpoint every 15 seconds, each at its own offset: samples are exactly one
 * interval apart, and a thousand machines are not scraped at once. A target can harm only itself: see the limits, and
 * KeepAliveConnection.
 */
export class Scraper {
  readonly #parts: ScraperParts;
  readonly #targets = new Map<string, Target>();
  readonly #budget = new Budget();
  readonly #outbox: ImportBatcher;
  readonly #health: HealthReports;
  /** Scrapes in progress, with their deadlines. */
  readonly #inFlight = new Map<Target, number>();
  #watching = false;

  constructor(parts: ScraperParts) {
    this.#parts = parts;
    this.#outbox = new ImportBatcher(parts.engine);
    const onError = (error: unknown): void => this.#complain(error);
    this.#health = new HealthReports({ clock: parts.clock, engine: parts.engine, onError });
  }

  /** Adds a machine that now runs, if it has a metrics endpoint. */
  started(machine: MeasuredMachine): void {
    this.ended(machine.id);
    if (!machine.metrics) return;
    const { port, path, https = false } = machine.metrics;
    const { app, region, host, instance } = machine;
    const labels = { app, region, host, instance };
    const address = this.#parts.reach(machine, port);
    const target: Target = {
      machine,
      connection: address ? new KeepAliveConnection(address, machine.metrics) : undefined,
      url: `${https ? "https" : "http"}://${bracketed(machine.private_ip)}:${port}${path}`,
      labels: Object.entries(labels).flat(),
      series: healthSeries(labels),
      health: "unknown",
      scraping: false,
      last_error: "",
      last_scrape_ms: undefined,
      last_duration_ms: 0,
      samples: 0,
      too_large: 0,
      stop: new AbortController(),
      running: Promise.resolve(),
    };
    this.#targets.set(machine.id, target);
    if (!target.connection) {
      target.last_error = "this driver's machines cannot be reached";
      return;
    }
    const { clock } = this.#parts;
    const { signal } = target.stop;
    const work = (at_ms: number): Promise<void> => this.#scrape(target, at_ms);
    target.running = onGrid(clock, SCRAPE_LIMITS.interval_ms, signal, work, momentOf(machine.id));
  }

  /** Removes a machine that no longer runs: its series end. */
  ended(machine_id: string): void {
    const target = this.#targets.get(machine_id);
    if (!target) return;
    this.#targets.delete(machine_id);
    this.#stop(target);
    if (target.health !== "unknown") void this.#endSeries(target);
  }

  /** Of one organization, by URL. */
  targets(org_id: string): TargetState[] {
    return [...this.#targets.values()]
      .filter(({ machine }) => machine.org_id === org_id)
      .map((target) => ({ ...target }))
      .toSorted((a, b) => (a.url < b.url ? -1 : 1));
  }

  async close(): Promise<void> {
    const targets = [...this.#targets.values()];
    for (const target of targets) this.#stop(target);
    await Promise.all(targets.map(({ running }) => running));
    await this.#health.close();
  }

  #stop(target: Target): void {
    target.stop.abort();
    target.connection?.close(new ScrapeFailure("the target is no longer scraped"));
  }

  async #scrape(target: Target, at_ms: number): Promise<void> {
    target.scraping = true;
    try {
      await this.#scrapeOnce(target, at_ms);
    } finally {
      target.scraping = false;
    }
  }

  async #scrapeOnce(target: Target, at_ms: number): Promise<void> {
    let error = "";
    let samples = 0;
    try {
      const result = await this.#import(target, at_ms);
      // The target was removed while its response was being imported: the imported series end as well.
      if (this.#isGone(target)) return await this.#endSeries(target);
      samples = result.samples;
      error = complaint(result);
      target.health = "up";
    } catch (thrown) {
      if (target.stop.signal.aborted) return;
      error = messageOf(thrown);
      if (thrown instanceof ScrapeFailure && thrown.too_large) target.too_large++;
      await this.#down(target, at_ms);
    }
    target.last_error = error.slice(0, SCRAPE_LIMITS.error_chars);
    target.last_scrape_ms = at_ms;
    target.samples = samples;
    this.#health.add(target.machine.org_id, target.series, at_ms, {
      up: target.health === "up" ? 1 : 0,
      scrape_duration_seconds: target.last_duration_ms / 1000,
      scrape_samples_scraped: samples,
      scrape_body_too_large_total: target.too_large,
    });
  }

  async #import(target: Target, at_ms: number): Promise<ImportResult> {
    const { machine, connection, labels } = target;
    if (!connection) throw new ScrapeFailure("it cannot be reached");
    const allowance = this.#budget.open(machine.org_id);
    try {
      const { bytes, format, release } = await this.#fetch(target, connection, allowance);
      const options = { format, timestamp_ms: at_ms, labels, target: machine.id };
      const imported = this.#outbox.import(machine.org_id, bytes, options);
      release();
      return await imported;
    } finally {
      allowance.release();
    }
  }

  async #fetch(target: Target, connection: KeepAliveConnection, allowance: Allowance): Promise<Fetched> {
    const { clock } = this.#parts;
    const began = clock.monotonic();
    this.#inFlight.set(target, began + SCRAPE_LIMITS.timeout_ms);
    if (!this.#watching) void this.#watch();
    try {
      return await connection.fetch(allowance);
    } finally {
      this.#inFlight.delete(target);
      target.last_duration_ms = clock.monotonic() - began;
    }
  }

  /** One timer for all scrapes in progress: it aborts those past their deadline. */
  async #watch(): Promise<void> {
    const { clock } = this.#parts;
    this.#watching = true;
    while (this.#inFlight.size > 0) {
      await clock.sleep(WATCH_MS);
      for (const [{ connection }, until] of this.#inFlight) if (clock.monotonic() >= until) connection?.close(late());
    }
    this.#watching = false;
  }

  /** Ends the series of its last scrape now, not five minutes later. */
  async #down(target: Target, at_ms: number): Promise<void> {
    target.health = "down";
    const { org_id, id } = target.machine;
    await this.#parts
      .engine()
      .endTarget(org_id, id, at_ms)
      .catch((error: unknown) => this.#complain(error));
  }

  #isGone(target: Target): boolean {
    return target.stop.signal.aborted && this.#targets.get(target.machine.id) !== target;
  }

  async #endSeries({ machine: { org_id, id }, series }: Target): Promise<void> {
    const at_ms = this.#parts.clock.now();
    this.#health.end(org_id, series, at_ms);
    await this.#parts
      .engine()
      .endTarget(org_id, id, at_ms)
      .catch((error: unknown) => this.#complain(error));
  }

  #complain(error: unknown): void {
    this.#parts.log.warn({ error }, "scraped metrics could not be stored");
  }
}

/** Interval at which deadlines are checked. */
const WATCH_MS = 500;
const late = (): ScrapeFailure => new ScrapeFailure(`no complete response within ${SCRAPE_LIMITS.timeout_ms / 1000} s`);

const bracketed = (ip: string): string => (ip.includes(":") ? `[${ip}]` : ip);

/** The error shown to the owner when lines could not be parsed; the other lines are stored. */
function complaint({ problem_count, problems, dropped }: ImportResult): string {
  const [first] = problems;
  const lines = problem_count === 1 ? "1 line was" : `${problem_count} lines were`;
  if (first) return `${lines} not parsed; line ${first.line}: ${first.problem}`;
  return dropped > 0 ? `${dropped} samples were dropped; api/v1/status/tsdb says why` : "";
}

/**
 * A machine's offset in the interval, which does not depend on other machines. Machines with the same offset are
 * scraped together, so that the process wakes up a few times a second and not once for each.
 */
function momentOf(machine_id: string): number {
  const hash = createHash("sha256").update(machine_id).digest().readUInt32LE(0);
  const { interval_ms, moment_ms } = SCRAPE_LIMITS;
  return (hash % (interval_ms / moment_ms)) * moment_ms;
}
