/** Language and database together, through the worker. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { random, seed, tempDir } from "../../../test/support.ts";
import { labelsOf } from "../tsdb/fixtures.ts";
import { seriesBatch } from "../tsdb/ingest/series-batch.ts";
import { type MetricsEngine, openMetricsEngine } from "./engine.ts";

const STEP = 15_000;
const POINTS = 1200;

async function open(t: TestContext): Promise<MetricsEngine> {
  const engine = openMetricsEngine({ dir: tempDir(), clock: systemClock });
  t.after(() => engine.close());
  return engine;
}

type Point = [time: number, value: string];
type Answer = {
  data: { resultType: string; result: { metric: Record<string, string>; value: Point; values: Point[] }[] };
};
const read = (bytes: Uint8Array): Answer => JSON.parse(Buffer.from(bytes).toString()) as Answer;

/** Requests of two apps, counted up by 3 and by 30 each step, ending now. */
async function fill(engine: MetricsEngine, org: string, end: number): Promise<void> {
  const samples = [3, 30].flatMap((speed) =>
    Array.from({ length: POINTS }, (_, i) => ({
      labels: labelsOf({ __name__: "requests", app: `app-${speed}` }),
      timestamp: end - (POINTS - 1 - i) * STEP,
      value: i * speed,
    })),
  );
  await engine.append(org, seriesBatch(samples));
}

const lastStep = (): number => Math.floor(systemClock.now() / STEP) * STEP;

suite("queries through the engine", () => {
  test("instant and range queries work in both dialects", async (t) => {
    const engine = await open(t);
    const end_ms = lastStep();
    await fill(engine, "acme", end_ms);
    const at = { start_ms: end_ms, end_ms };
    const now = read(await engine.query("acme", { query: "sum(rate(requests[5m]))", ...at }));
    assert.deepEqual([now.data.resultType, now.data.result[0]?.value], ["vector", [end_ms / 1000, "2.2"]]);
    const strict = read(await engine.query("acme", { query: "sum(rate(requests[5m]))", dialect: "promql", ...at }));
    assert.equal(Number(strict.data.result[0]?.value[1]).toFixed(6), "2.200000");
    const range = read(
      await engine.query("acme", { query: "requests", start_ms: end_ms - 10 * STEP, end_ms, step_ms: STEP }),
    );
    assert.equal(range.data.result.length, 2);
    assert.equal(range.data.result[0]?.values.length, 11);
  });

  test("an invalid query reports its position, and no organization sees another's series", async (t) => {
    const engine = await open(t);
    const end_ms = lastStep();
    await fill(engine, "acme", end_ms);
    const at = { start_ms: end_ms, end_ms };
    await assert.rejects(
      engine.query("acme", { query: "sum(rate(requests[5m])", ...at }),
      (error: Error & { details: unknown }) => {
        assert.match(error.message, /1:23: parse error/);
        assert.deepEqual(error.details, { kind: "bad_data", place: { line: 1, column: 23 } });
        return true;
      },
    );
    assert.deepEqual(read(await engine.query("other", { query: "requests", ...at })).data.result, []);
    await assert.rejects(
      engine.query("acme", { query: "requests", ...at, limits: { series: 1 } }),
      /limit series is 1/,
    );
  });

  test("a cached result equals the computed one, whatever is written in between", async (t) => {
    const engine = await open(t);
    const end_ms = lastStep();
    await fill(engine, "acme", end_ms);
    const dice = random(seed(t));
    const query = "sum by (app) (increase(requests[2m]))";
    for (let round = 0; round < 40; round++) {
      // Most writes are of a series that begins hours ago: what was settled no longer is.
      const back = Math.floor(dice() * POINTS);
      const late = Array.from({ length: 5 }, (_, i) => ({
        labels: labelsOf({ __name__: "requests", app: `late-${round}` }),
        timestamp: end_ms - back * STEP + i * 1000,
        value: i,
      }));
      if (round % 2 === 1) await engine.append("acme", seriesBatch(late));
      const start_ms = end_ms - (POINTS - 100 + Math.floor(dice() * 100)) * STEP;
      const request = { query, start_ms, end_ms: end_ms - Math.floor(dice() * 20) * STEP, step_ms: STEP };
      const remembered = read(await engine.query("acme", request));
      // A matcher on a label that no series has changes the text but not the result, so it misses the cache.
      const fresh = query.replace("requests", `requests{round${round}=""}`);
      const computed = read(await engine.query("acme", { ...request, query: fresh }));
      const values = (answer: Answer) =>
        answer.data.result.map(({ metric, values: list }) => [
          metric["app"],
          list.map(([time, value]) => [time, Number(value).toFixed(6)]),
        ]);
      assert.deepEqual(values(remembered), values(computed), `round ${round}`);
    }
  });
});
