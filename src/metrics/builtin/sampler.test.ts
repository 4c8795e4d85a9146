import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { tempDir } from "../../../test/support.ts";
import { type MetricsEngine, openMetricsEngine } from "../engine/engine.ts";
import { Sampler } from "./sampler.ts";
import type { BuiltinSample, MeasuredMachine, SampleProvider } from "./sources.ts";

const STEP = 15_000;
const sample = (name: string, value: number, labels: Record<string, string> = {}): BuiltinSample => ({
  org_id: "acme",
  name,
  labels: { app: "web", ...labels },
  value,
});

function anEngine(t: TestContext): MetricsEngine {
  const engine = openMetricsEngine({ dir: tempDir(), clock: systemClock });
  t.after(() => engine.close());
  return engine;
}

const aSampler = (engine: MetricsEngine, provider: SampleProvider): Sampler =>
  new Sampler({
    clock: systemClock,
    log: silentLog,
    engine: () => engine,
    machines: async () => [],
    stats: { read: async () => undefined },
    volumes: async () => [],
    providers: [provider],
  });

async function shown(engine: MetricsEngine, query: string, at_ms: number): Promise<[string, string][]> {
  const bytes = await engine.query("acme", { query, start_ms: at_ms, end_ms: at_ms });
  const { data } = JSON.parse(Buffer.from(bytes).toString()) as {
    data: { result: { metric: { proxy_id?: string }; value: [number, string] }[] };
  };
  return data.result.map(({ metric, value }) => [metric.proxy_id ?? "", value[1]]);
}

suite("built-in sampler", () => {
  test("a round that is under way at the end is broken off, and ends no series", async (t) => {
    const engine = anEngine(t);
    const read: string[] = [];
    const reading = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<undefined>();
    const machines = Array.from({ length: 1000 }, (_, n) => ({ id: `m${n}`, org_id: "acme", app_name: "web" }));
    const sampler = new Sampler({
      clock: systemClock,
      log: silentLog,
      engine: () => engine,
      machines: async () => machines as unknown as readonly MeasuredMachine[],
      stats: {
        read({ id }) {
          read.push(id);
          reading.resolve();
          return gate.promise;
        },
      },
      volumes: async () => [],
      providers: [() => [sample("svc_instance_up", 1)]],
    });
    const round = sampler.sample(Math.floor(systemClock.now() / STEP) * STEP);
    await reading.promise;
    const closed = sampler.close();
    gate.resolve(undefined);
    await Promise.all([round, closed]);
    assert.ok(read.length < machines.length, `${read.length} machines were read`);
    assert.deepEqual(await shown(engine, "svc_instance_up", systemClock.now()), []);
  });

  test("series of an earlier process that no longer exist end with the first round", async (t) => {
    const engine = anEngine(t);
    const start = Math.floor(systemClock.now() / STEP) * STEP - 10 * STEP;
    const exit = sample("svc_instance_exit_code", 0);
    const before = aSampler(engine, () => [
      sample("svc_app_concurrency", 3, { proxy_id: "blue" }),
      sample("svc_instance_up", 1),
      exit,
    ]);
    await before.sample(start);
    // Another process, which has only the stored state of the previous one.
    const after = aSampler(engine, () => [
      sample("svc_app_concurrency", 1, { proxy_id: "green" }),
      sample("svc_instance_up", 1),
    ]);
    await after.sample(start + STEP);
    const now = start + STEP + 1000;
    assert.deepEqual(await shown(engine, "svc_app_concurrency", now), [["green", "1"]]);
    assert.deepEqual(await shown(engine, "svc_instance_up", now), [["", "1"]]);
    assert.deepEqual(await shown(engine, "count_over_time(svc_instance_up[1m])", now), [["", "2"]]);
    // An exit is sampled once, and its series does not end.
    assert.deepEqual(await shown(engine, "svc_instance_exit_code", now), [["", "0"]]);
  });

  test("a new counter gets a zero one round earlier; a gauge or a continuing counter does not", async (t) => {
    const engine = anEngine(t);
    const start = Math.floor(systemClock.now() / STEP) * STEP - 10 * STEP;
    let value = 500;
    const sampler = aSampler(engine, () => [
      { ...sample("svc_edge_data_out", value), counter: true },
      sample("svc_app_concurrency", value),
    ]);
    await sampler.sample(start);
    value = 600;
    await sampler.sample(start + STEP);
    const now = start + STEP;
    assert.deepEqual(await shown(engine, "increase(svc_edge_data_out[1m])", now), [["", "600"]]);
    assert.deepEqual(await shown(engine, "count_over_time(svc_edge_data_out[1m])", now), [["", "3"]]);
    assert.deepEqual(await shown(engine, "count_over_time(svc_app_concurrency[1m])", now), [["", "2"]]);
  });
});
