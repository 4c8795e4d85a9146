import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import { onGrid } from "../ticks.ts";
import { Batches, batchOnce, type Round } from "./batches.ts";
import type { Readings } from "./fields.ts";
import { exitSamples, instanceSamples, volumeSamples } from "./instance.ts";
import { BUILTIN_LIMITS } from "./limits.ts";
import type {
  BuiltinSample,
  MachineExit,
  MachineStats,
  Machines,
  MeasuredMachine,
  SampleProvider,
  VolumeFacts,
} from "./sources.ts";

export interface SamplerParts {
  clock: Clock;
  log: Log;
  /** Called only when there are samples. */
  engine(): Pick<MetricsEngine, "append" | "query">;
  machines: Machines;
  stats: MachineStats;
  volumes(): Promise<readonly VolumeFacts[]>;
  /** Further sources: the proxy, hosted databases. */
  providers: readonly SampleProvider[];
}

/** All built-in series that have not ended; exit series never end. */
const OPEN_SERIES = '{__name__=~"(svc|pg)_.+",__name__!~"svc_instance_exit_.+"}';

interface OpenSeries {
  data: { result: { metric: Record<string, string> }[] };
}

/**
 * Reads all built-in metrics every 15 seconds, at whole multiples, and appends them with exactly that timestamp, so
 * that all series share one grid. A failing source affects only its own series.
 */
export class Sampler {
  readonly #parts: SamplerParts;
  readonly #batches = new Batches();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;

  constructor(parts: SamplerParts) {
    this.#parts = parts;
  }

  start(): void {
    const { clock } = this.#parts;
    this.#running ??= onGrid(clock, BUILTIN_LIMITS.interval_ms, this.#closing.signal, (at_ms) => this.sample(at_ms));
  }

  /** Aborts a round in progress: with thousands of machines it takes seconds. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** A machine started. It is read once, so that counters have a base. */
  async started(machine: MeasuredMachine): Promise<void> {
    await this.#read(machine);
  }

  /** One round. */
  async sample(at_ms: number): Promise<void> {
    const round = this.#batches.begin(at_ms);
    await this.#machines(round);
    // Half a round would end the series of the other half.
    if (this.#closing.signal.aborted) return;
    const others = await Promise.all([
      this.#or("volumes", async () => (await this.#parts.volumes()).flatMap(volumeSamples)),
      ...this.#parts.providers.map((provider) => this.#or("a provider of samples", async () => await provider())),
    ]);
    for (const samples of others) round.add(samples);
    await this.#adopt(new Set(round.org_ids), at_ms);
    const batches = this.#batches.end(round);
    await Promise.all(Array.from(batches, ([org_id, batch]) => this.#append(org_id, batch)));
  }

  /** Series from before a restart that no longer exist end with the first round, not after a lookback. */
  async #adopt(org_ids: ReadonlySet<string>, at_ms: number): Promise<void> {
    const fresh = [...org_ids].filter((org_id) => !this.#batches.knows(org_id));
    await Promise.all(
      fresh.map(async (org_id) => {
        try {
          const query = { query: OPEN_SERIES, start_ms: at_ms - 1, end_ms: at_ms - 1, nocache: true };
          const bytes = await this.#parts.engine().query(org_id, query);
          const { data } = JSON.parse(Buffer.from(bytes).toString()) as OpenSeries;
          this.#batches.adopt(
            org_id,
            data.result.map(({ metric }) => metric),
          );
        } catch (error) {
          this.#parts.log.debug({ error, org_id }, "metrics from before the start could not be read");
        }
      }),
    );
  }

  /** A machine's main process exited: recorded with the time of the exit. */
  async exited(exit: MachineExit): Promise<void> {
    await this.#append(exit.machine.org_id, batchOnce(exitSamples(exit), exit.at_ms));
  }

  async #append(org_id: string, batch: Parameters<MetricsEngine["append"]>[1]): Promise<void> {
    try {
      await this.#parts.engine().append(org_id, batch);
    } catch (error) {
      this.#parts.log.warn({ error, org_id }, "built-in metrics could not be stored");
    }
  }

  async #machines(round: Round): Promise<void> {
    const waiting = [...(await this.#listed())];
    const readOn = async (): Promise<void> => {
      for (let machine = waiting.pop(); machine && !this.#closing.signal.aborted; machine = waiting.pop()) {
        round.add(instanceSamples(machine, await this.#read(machine)));
      }
    };
    await Promise.all(Array.from({ length: BUILTIN_LIMITS.machines_at_once }, readOn));
  }

  async #listed(): Promise<readonly MeasuredMachine[]> {
    try {
      return await this.#parts.machines();
    } catch (error) {
      this.#parts.log.warn({ error }, "machines could not be read for metrics");
      return [];
    }
  }

  async #read(machine: MeasuredMachine): Promise<Readings | undefined> {
    const { clock, stats, log } = this.#parts;
    const late = new AbortController();
    try {
      return await Promise.race([
        stats.read(machine),
        clock.sleep(BUILTIN_LIMITS.machine_read_ms, late.signal).then(() => undefined),
      ]);
    } catch (error) {
      log.debug({ error, machine: machine.id }, "a machine could not be read");
      return undefined;
    } finally {
      late.abort();
    }
  }

  async #or(what: string, gather: () => Promise<readonly BuiltinSample[]>): Promise<readonly BuiltinSample[]> {
    try {
      return await gather();
    } catch (error) {
      this.#parts.log.warn({ error }, `${what} could not be read for metrics`);
      return [];
    }
  }
}
