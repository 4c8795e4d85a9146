/**
 * From `kill -9` to the first answer: 105 minutes of 10,000 series, all of which our log still has. Processor time until
 * then, the time on the clock, and how many of the acknowledged samples are there again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../processes.ts";
import { START_MS, STEP_MS } from "./data.ts";
import { type Engine, read } from "./engines.ts";
import { load } from "./load.ts";
import { requestFiles } from "./requests.ts";

const INSTANCES = 200;
const POINTS = 420;
/** VictoriaMetrics writes what it received to the disk some seconds later. */
const WRITTEN_MS = 8000;
/** The middle one counts. */
const RUNS = 3;

const last_s = (START_MS + (POINTS - 1) * STEP_MS) / 1000;
const instant = (query: string): string => `/api/v1/query?query=${encodeURIComponent(query)}&time=${last_s}`;
/** Of one metric: Prometheus does not add up series that differ in their name alone. */
const COUNTED = "svc_app_http_responses_count";
const COUNTED_PER_INSTANCE = 10;
/** The newest samples may be lost: whatever is within reach is an answer. */
const SERIES = instant(`count(last_over_time(${COUNTED}[3h]))`);
const SAMPLES = instant(`sum(count_over_time(${COUNTED}[3h]))`);

export interface Restart {
  cpu_ms: number;
  wall_ms: number;
  /** Of the acknowledged samples those that are there after it. */
  kept_percent: number;
}

/** The engine, which is empty and may be stopped afterwards, loaded, killed and started again. */
export async function measureRestart(engine: Engine): Promise<Restart> {
  await load(engine, requestFiles(INSTANCES, POINTS));
  await sleep(WRITTEN_MS);
  const runs: Omit<Restart, "kept_percent">[] = [];
  for (let run = 0; run < RUNS; run++) {
    await engine.kill();
    const began = performance.now();
    await engine.restart();
    await until(engine.name, async () => {
      if ((await numberOf(engine, SERIES)) === 0) throw new Error("no series yet");
    });
    runs.push({ cpu_ms: engine.cpu() * 1000, wall_ms: performance.now() - began });
  }
  const [middle] = runs.toSorted((a, b) => a.cpu_ms - b.cpu_ms).slice(RUNS >> 1);
  const kept = await numberOf(engine, SAMPLES);
  return {
    cpu_ms: middle?.cpu_ms ?? 0,
    wall_ms: middle?.wall_ms ?? 0,
    kept_percent: (100 * kept) / (INSTANCES * COUNTED_PER_INSTANCE * POINTS),
  };
}

async function numberOf(engine: Engine, path: string): Promise<number> {
  const { data } = JSON.parse(await read(engine.base + path + engine.query_suffix)) as {
    data: { result: { value: [number, string] }[] };
  };
  return Number(data.result[0]?.value[1] ?? 0);
}
