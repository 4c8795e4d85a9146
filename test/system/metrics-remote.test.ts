/** VictoriaMetrics instead of the embedded engine: the same API, the same walls between organizations, nothing lost. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { parseRemoteAddress } from "#metrics/remote/address.ts";
import { openRemoteEngine, type RemoteEngine } from "#metrics/remote/engine.ts";
import { ENGINES, type Engine, read, whyNot } from "../../bench/metrics/engines.ts";
import { provider } from "../inside.ts";
import { metricsApiSuite } from "../metrics-api.suite.ts";
import { testPlatform } from "../platform.ts";
import { tempDir } from "../support.ts";

const skip = whyNot("victoria-metrics");

suite("metrics in VictoriaMetrics", { skip }, () => {
  let victoria: Engine;
  before(async () => {
    victoria = await ENGINES["victoria-metrics"]();
  });
  after(() => victoria.stop());

  const visible = async (engine: RemoteEngine): Promise<void> => {
    await engine.drained();
    await read(`${victoria.base}/internal/force_flush`);
  };

  metricsApiSuite("VictoriaMetrics", {
    platform: async (t) => await testPlatform(t, { HANGAR_METRICS_URL: victoria.base }),
    visible: async (platform) => await visible(platform.metrics() as RemoteEngine),
    own_limits: false,
  });

  const engineIn = (dir: string, base: string): RemoteEngine =>
    openRemoteEngine({
      dir,
      address: parseRemoteAddress(base) ?? assert.fail(base),
      clock: systemClock,
      log: silentLog,
      tenant: async () => 7,
    });
  const put = async (engine: RemoteEngine, org: string, text: string): Promise<void> => {
    await engine.importText(org, Buffer.from(text), { format: "prometheus", timestamp_ms: systemClock.now() - 1000 });
  };
  const values = async (engine: RemoteEngine, org: string, query: string): Promise<string[]> => {
    const now = systemClock.now();
    const bytes = await engine.query(org, { query, start_ms: now, end_ms: now });
    const { data } = JSON.parse(Buffer.from(bytes).toString()) as { data: { result: { metric: object }[] } };
    return data.result.map(({ metric }) => JSON.stringify(metric)).sort((a, b) => (a < b ? -1 : 1));
  };

  test("no query of an organization reaches another's series (T3)", async (t) => {
    const engine = engineIn(tempDir(), victoria.base);
    t.after(() => engine.close());
    await put(engine, "mine", `jobs{app="web",hangar_org="theirs"} 1\n`);
    await put(engine, "theirs", `secret{app="web"} 1\njobs{app="web"} 2\n`);
    await visible(engine);
    const tries = [
      "secret",
      '{__name__=~".+"}',
      '{hangar_org="theirs"}',
      '{hangar_org=~".*"}',
      '{__name__="secret" or hangar_org="theirs"}',
      "jobs or secret",
      'WITH (f = {hangar_org="theirs"}) f',
      'label_set(secret, "hangar_org", "mine")',
      'union({__name__!=""}, secret)',
      'sum({__name__=~"secret|jobs"}) by (__name__, hangar_org)',
      'count_over_time({__name__!=""}[1h])',
    ];
    for (const query of tries) {
      // An older engine does not know every form; refusing is as good as telling nothing.
      const told = await values(engine, "mine", query).catch(() => []);
      assert.doesNotMatch(told.join(), /secret"|theirs/, query);
    }
    const scope = { start_ms: 0, end_ms: systemClock.now() };
    assert.deepEqual(await engine.labelValues("mine", "__name__", scope), ["jobs"]);
    assert.deepEqual(await engine.labelValues("mine", "hangar_org", scope), []);
    assert.deepEqual(await engine.labelNames("mine", scope), ["__name__", "app"]);
    const forged = { selector: [[{ name: "hangar_org", op: "=" as const, value: "theirs" }]], ...scope };
    assert.equal(Buffer.from(await engine.series("mine", forged)).toString(), "[]");
    assert.deepEqual(await values(engine, "mine", "jobs"), ['{"__name__":"jobs","app":"web"}']);
    assert.match(
      await engine.federate("mine", { selector: [[]], at_ms: scope.end_ms, lookback_ms: 1000 }),
      /^jobs\{app="web"\} 1/m,
    );
    await engine.dropOrg("theirs");
    assert.deepEqual(await values(engine, "theirs", "secret"), []);
    assert.equal((await values(engine, "mine", "jobs")).length, 1);
  });

  test("samples wait on disk while VictoriaMetrics is unreachable, also across a restart", async (t) => {
    const dir = tempDir();
    const nowhere = engineIn(dir, "http://127.0.0.1:1");
    await put(nowhere, "away", "first 1\n");
    await assert.rejects(nowhere.query("away", { query: "first", start_ms: 0, end_ms: 0 }), { code: "storage_failed" });
    await nowhere.close();
    const engine = engineIn(dir, victoria.base);
    t.after(() => engine.close());
    await put(engine, "away", "second 1\n");
    await visible(engine);
    assert.deepEqual(await values(engine, "away", '{__name__=~"first|second"}'), [
      '{"__name__":"first"}',
      '{"__name__":"second"}',
    ]);
  });

  test("a VictoriaMetrics cluster gets a tenant per organization and no label", async (t) => {
    const { url: base, seen } = await provider(
      t,
      (_request, response) => void response.end('{"status":"success","data":{"resultType":"vector","result":[]}}'),
    );
    const engine = engineIn(tempDir(), `${base}/insert/{tenant}/prometheus,${base}/select/{tenant}/prometheus`);
    t.after(() => engine.close());
    await put(engine, "mine", "jobs 1\n");
    await engine.drained();
    await values(engine, "mine", "jobs");
    await engine.dropOrg("mine");
    assert.deepEqual(
      seen.map(({ url }) => url),
      [
        "/insert/7/prometheus/api/v1/write",
        "/select/7/prometheus/api/v1/query",
        "/delete/7/prometheus/api/v1/admin/tsdb/delete_series?match[]=%7B__name__!%3D%22%22%7D",
      ],
    );
  });

  test("an engine that ignores the enforced label is not queried", async (t) => {
    const { url } = await provider(
      t,
      (_request, response) => void response.end('{"status":"success","data":["leak"]}'),
    );
    const engine = engineIn(tempDir(), url);
    t.after(() => engine.close());
    await assert.rejects(engine.labelNames("mine", { start_ms: 0, end_ms: 1 }), /ignores extra_label/);
  });
});
