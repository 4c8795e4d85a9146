import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { STALE_NAN } from "../source.ts";
import { labelsOf } from "../tsdb/fixtures.ts";
import { seriesBatch } from "../tsdb/ingest/series-batch.ts";
import { type MetricsEngine, openMetricsEngine } from "./engine.ts";
import type { EngineOptions } from "./worker-link.ts";

const evaluator_url = new URL("./evaluator.fixtures.ts", import.meta.url).href;

async function open(t: TestContext, more: Partial<EngineOptions> = {}): Promise<MetricsEngine> {
  const engine = openMetricsEngine({ dir: tempDir(), clock: systemClock, evaluator_url, ...more });
  t.after(() => engine.close());
  return engine;
}

const now = (): number => systemClock.now();
const all = (): { start_ms: number; end_ms: number } => ({ start_ms: 0, end_ms: now() + 60_000 });
const up = (app: string) => labelsOf({ __name__: "up", app });
const json = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString());

suite("metrics engine", () => {
  test("the engine accepts samples in every format and answers every query type", async (t) => {
    const engine = await open(t);
    const time = now();
    const batch = seriesBatch([
      { labels: up("web"), timestamp: time, value: 1 },
      { labels: up("db"), timestamp: time, value: STALE_NAN },
    ]);
    assert.equal((await engine.append("acme", batch)).samples, 2);
    const text = Buffer.from("# TYPE jobs gauge\njobs 3\nbad line here\n");
    const imported = await engine.importText("acme", text, {
      format: "prometheus",
      timestamp_ms: time,
      labels: ["app", "web"],
    });
    assert.deepEqual([imported.samples, imported.problems[0]?.line], [1, 3]);

    assert.deepEqual(json(await engine.query("acme", { query: "q", ...all() })), { query: "q", count: 3 });
    assert.deepEqual(
      json(await engine.series("acme", { selector: [[{ name: "__name__", op: "=", value: "jobs" }]], ...all() })),
      [{ __name__: "jobs", app: "web" }],
    );
    assert.deepEqual(await engine.labelNames("acme", all()), ["__name__", "app"]);
    assert.deepEqual(await engine.labelValues("acme", "app", all()), ["db", "web"]);
    assert.deepEqual(
      await engine.labelValues("acme", "app", { selector: [[{ name: "__name__", op: "=", value: "jobs" }]], ...all() }),
      ["web"],
    );
    assert.deepEqual(await engine.metadata("acme"), [["jobs", { type: "gauge", help: "", unit: "" }]]);
    assert.equal(
      await engine.federate("acme", { selector: [[]], at_ms: time, lookback_ms: 300_000 }),
      `# TYPE jobs untyped\njobs{app="web"} 3 ${time}\n# TYPE up untyped\nup{app="web"} 1 ${time}\n`,
    );
    const status = await engine.status("acme", { focus_label: "app" });
    assert.equal(status.totalSeries, 3);
    assert.deepEqual(status.seriesCountByMetricName, [
      { name: "up", value: 2 },
      { name: "jobs", value: 1 },
    ]);
    assert.deepEqual(status.seriesCountByFocusLabelValue, [
      { name: "web", value: 2 },
      { name: "db", value: 1 },
    ]);
    await engine.flush();
  });

  test("the engine locks its folder: a second one is refused until the first is closed", async (t) => {
    const dir = tempDir();
    const first = await open(t, { dir });
    const refused = await open(t, { dir });
    await assert.rejects(refused.flush(), {
      code: "storage_failed",
      message: `the metrics engine is down: the metrics folder ${dir} cannot be used: another process (pid ${process.pid}) is using it; stop that one, or choose another folder`,
    });
    await refused.close();
    await Promise.all([first.close(), first.close()]);
    const second = await open(t, { dir });
    await second.flush();
  });

  test("an organization sees only its own series, and a query of an unknown one creates nothing", async (t) => {
    const engine = await open(t);
    for (const org of ["one", "two", "../one", "ONE"]) {
      await engine.append(org, seriesBatch([{ labels: up(org), timestamp: now(), value: 1 }]));
    }
    assert.deepEqual(await engine.labelValues("../one", "app", all()), ["../one"]);
    assert.deepEqual(await engine.labelValues("one", "app", all()), ["one"]);
    assert.deepEqual(json(await engine.query("three", { query: "q", ...all() })), { query: "q", count: 0 });
    assert.equal((await engine.status("three")).totalSeries, 0);
    await engine.flush("three");
    await engine.dropOrg("one");
    assert.deepEqual(await engine.labelValues("one", "app", all()), []);
    assert.deepEqual(await engine.labelValues("ONE", "app", all()), ["ONE"]);
  });

  test("errors of the worker arrive with their own code", async (t) => {
    const engine = await open(t);
    await assert.rejects(engine.importRemoteWrite("a", Buffer.from("nonsense")), { code: "invalid_request" });
    await assert.rejects(engine.query("a", { query: "fail", ...all() }), {
      name: "QueryFailure",
      kind: "PlacedError",
      message: "wrong at 7",
      details: { at: 7 },
    });
  });

  test("a cancelled query is stopped, also one that has not begun", async (t) => {
    const engine = await open(t);
    const abort = new AbortController();
    const running = engine.query("a", { query: "forever", ...all() }, abort.signal);
    const waiting = engine.query("a", { query: "forever", ...all() }, abort.signal);
    const next = engine.query("a", { query: "next", ...all() });
    abort.abort(new Error("the client went away"));
    await assert.rejects(running, /went away/);
    await assert.rejects(waiting, /went away/);
    assert.deepEqual(json(await next), { query: "next", count: 0 });
  });

  test("a full queue refuses at once with the limit's name", async (t) => {
    const engine = await open(t, { engine_limits: { questions_queued: 2, writes_queued: 1 } });
    const abort = new AbortController();
    const running = [1, 2].map(() => engine.query("a", { query: "forever", ...all() }, abort.signal));
    await assert.rejects(engine.query("a", { query: "q", ...all() }), /questions_queued is 2/);
    const write = engine.append("a", seriesBatch([{ labels: up("web"), timestamp: now(), value: 1 }]));
    await assert.rejects(engine.append("a", seriesBatch([])), { code: "overloaded" });
    abort.abort();
    await Promise.allSettled(running);
    assert.equal((await write).samples, 1);
  });

  test("close works with running and queued queries", async (t) => {
    const engine = await open(t, { engine_limits: { questions_queued: 1 } });
    const abort = new AbortController();
    const running = engine.query("a", { query: "forever", ...all() }, abort.signal);
    const closed = engine.close();
    abort.abort();
    await Promise.allSettled([running]);
    await closed;
  });

  test("a crashed worker is reported, restarted, and has what was on disk", async (t) => {
    const crashes: string[] = [];
    const engine = await open(t, { engine_limits: { restarts: 1 }, onCrash: (error) => crashes.push(error.message) });
    await engine.append("a", seriesBatch([{ labels: up("web"), timestamp: now(), value: 1 }]));
    await engine.flush("a");
    const lost = engine.query("a", { query: "crash", ...all() });
    const behind = engine.query("a", { query: "q", ...all() });
    await assert.rejects(lost, { code: "storage_failed" });
    await assert.rejects(behind, { code: "storage_failed", message: /stopped unexpectedly: .* ended with code 3/ });
    assert.deepEqual(json(await engine.query("a", { query: "again", ...all() })), { query: "again", count: 1 });
    assert.deepEqual(crashes, ["the metrics worker ended with code 3"]);

    await Promise.allSettled([
      engine.query("a", { query: "crash", ...all() }),
      engine.query("a", { query: "q", ...all() }),
    ]);
    await assert.rejects(engine.query("a", { query: "q", ...all() }), /is down: .* ended with code 3/);
  });

  test("an unknown limit is refused", async (t) => {
    const engine = await open(t, { limits: { no_such: 1 } as object, engine_limits: { restarts: 0 } });
    await assert.rejects(engine.flush(), /no metrics limit named no_such/);
  });
});
