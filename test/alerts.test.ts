import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

const RULES = "/v1/orgs/personal/alerts/rules";
const PROMETHEUS = "/prometheus/personal/api/v1";

const FAST = `
groups:
  - name: fast
    interval: 1s
    rules:
      - record: app:errors
        expr: sum by (app) (errors)
      - alert: Errors
        expr: app:errors > 5
        labels: {severity: page}
        annotations:
          summary: '{{ $labels.app }} has {{ $value }} errors'
      - alert: Slow
        expr: app:errors > 5
        for: 1h
`;

async function write(platform: TestPlatform, name: string, labels: Record<string, string>, value: number) {
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id;
  const sample = { labels: labelsOf({ __name__: name, ...labels }), timestamp: systemClock.now(), value };
  await platform.metrics().append(org, seriesBatch([sample]));
}

const firing = async (platform: TestPlatform) => (await platform.ask("GET /v1/orgs/personal/alerts")).body.alerts;

suite("alerts", () => {
  test("rules are evaluated; alerts, their series and recorded series are seen through both APIs", async (t) => {
    const platform = await testPlatform(t);
    await write(platform, "errors", { app: "web" }, 7);
    const put = await platform.ask(`PUT ${RULES}/fast`, { body: { content: FAST } });
    assert.equal(put.status, 200, put.text);
    assert.deepEqual([put.body.groups, put.body.rules, put.body.dialect], [1, 3, "promql"]);
    const alerts = await until("the rules", async () => {
      const found = await firing(platform);
      return found.length === 2 && found;
    });
    assert.deepEqual(
      alerts.map((one: Record<string, unknown>) => [one["labels"], one["state"], one["annotations"], one["value"]]),
      [
        [{ alertname: "Errors", app: "web", severity: "page" }, "firing", { summary: "web has 7 errors" }, "7"],
        [{ alertname: "Slow", app: "web" }, "pending", {}, "7"],
      ],
    );
    const series = await until("the rules", async () => {
      const { body } = await platform.ask(`GET ${PROMETHEUS}/query?query=ALERTS`);
      return body.data.result.length === 2 && body.data.result;
    });
    assert.deepEqual(
      series.map(({ metric }: { metric: object }) => metric),
      [
        { __name__: "ALERTS", alertname: "Errors", alertstate: "firing", app: "web", severity: "page" },
        { __name__: "ALERTS", alertname: "Slow", alertstate: "pending", app: "web" },
      ],
    );
    const { groups } = (await platform.ask(`GET ${PROMETHEUS}/rules?rule_group[]=fast`)).body.data;
    assert.deepEqual(
      groups[0].rules.map(({ name, type, health, state }: Record<string, string>) => [name, type, health, state]),
      [
        ["app:errors", "recording", "ok", undefined],
        ["Errors", "alerting", "ok", "firing"],
        ["Slow", "alerting", "ok", "pending"],
      ],
    );
    assert.equal(groups[0].rules[1].alerts[0].value, "7e+00");
    await write(platform, "errors", { app: "web" }, 1);
    await until("the rules", async () => (await firing(platform)).length === 0);
    const ended = (await platform.ask("GET /v1/orgs/personal/alerts?resolved=true")).body.alerts;
    assert.deepEqual(
      ended.map((one: { state: string }) => one.state),
      ["resolved"],
    );
    const gone = (await platform.ask(`GET ${PROMETHEUS}/query?query=ALERTS`)).body.data.result;
    assert.deepEqual(gone, [], "their series ended with them");
  });

  test("an alert keeps its age over a restart", async (t) => {
    const first = await testPlatform(t);
    await write(first, "errors", { app: "web" }, 7);
    await first.ask(`PUT ${RULES}/fast`, { body: { content: FAST } });
    const before = await until("the rules", async () => {
      const found = await firing(first);
      return found.length === 2 && found;
    });
    await first.close();
    const second = await testPlatform(t, { HANGAR_DATA_DIR: first.data_dir });
    const after = await firing(second);
    const facts = ({ labels, state, active_at }: Record<string, unknown>) => ({ labels, state, active_at });
    assert.deepEqual(after.map(facts), before.map(facts));
  });

  test("an app's own rules see and write the series of that app only", async (t) => {
    const platform = await testPlatform(t);
    for (const app of ["web", "other"]) {
      await platform.ask("POST /v1/apps", { body: { app_name: app } });
      await write(platform, "errors", { app }, 9);
    }
    const content = JSON.stringify({
      groups: [
        {
          name: "web",
          interval: "1s",
          rules: [
            {
              alert: "Any",
              expr: "errors > 0",
              annotations: { all: '{{ range query "errors" }}{{ .Labels.app }} {{ end }}' },
            },
            { record: "stolen", expr: "sum(errors)", labels: { app: "other" } },
          ],
        },
      ],
    });
    const put = await platform.ask("PUT /v1/apps/web/alerts/rules", { body: { content } });
    assert.equal(put.status, 200, put.text);
    assert.equal(put.body.app_name, "web");
    const [alert, ...others] = await until("the rules", async () => {
      const found = await firing(platform);
      return found.length > 0 && found;
    });
    assert.deepEqual(others, []);
    assert.deepEqual([alert.labels.app, alert.annotations.all], ["web", "web "]);
    const recorded = await until("the rules", async () => {
      const { body } = await platform.ask(`GET ${PROMETHEUS}/query?query=stolen`);
      return body.data.result.length > 0 && body.data.result;
    });
    assert.deepEqual(
      recorded.map(({ metric, value }: { metric: object; value: [number, string] }) => [metric, value[1]]),
      [[{ __name__: "stolen", app: "web" }, "9"]],
    );
    await platform.ask("DELETE /v1/apps/web?force=true");
    const names = (await platform.ask(`GET ${RULES}`)).body.rule_files.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ["default"], "they are deleted with the app");
  });

  test("an app's own rules do not get labels of other apps through info()", async (t) => {
    const platform = await testPlatform(t);
    const target = { job: "same", instance: "same" };
    for (const app of ["web", "other"]) {
      await platform.ask("POST /v1/apps", { body: { app_name: app } });
      await write(platform, "errors", { app, ...target }, 9);
    }
    await write(platform, "target_info", { app: "other", ...target, of_other: "yes" }, 1);
    await write(platform, "build_info", { app: "web", ...target, of_web: "yes" }, 1);
    const rules = ["info(errors)", 'info(errors, {__name__=~".+_info"})'].map((expr, at) => ({
      record: `seen:${at}`,
      expr,
    }));
    const content = JSON.stringify({ groups: [{ name: "web", interval: "1s", rules }] });
    const put = await platform.ask("PUT /v1/apps/web/alerts/rules", { body: { content } });
    assert.equal(put.status, 200, put.text);
    const series = await until("the rules", async () => {
      const { body } = await platform.ask(`GET ${PROMETHEUS}/query?query={__name__=~"seen:.%2B"}`);
      const found = body.data.result as { metric: Record<string, string> }[];
      return found.length === 2 && found;
    });
    for (const { metric } of series) assert.equal(metric["of_other"], undefined, JSON.stringify(metric));
  });

  test("the built-in rules are shown, replaced, switched off and brought back", async (t) => {
    const platform = await testPlatform(t);
    const built_in = (await platform.ask(`GET ${RULES}/default`)).body;
    assert.equal(built_in.built_in, true);
    assert.match(built_in.content, /alert: MachineOutOfMemory/);
    // What is shown can be applied as it is.
    const again = await platform.ask(`PUT ${RULES}/default`, { body: { content: built_in.content } });
    assert.deepEqual([again.status, again.body.rules, again.body.built_in], [200, built_in.rules, false]);
    assert.equal((await platform.ask(`PUT ${RULES}/default`, { body: { content: "groups: []" } })).body.rules, 0);
    assert.deepEqual((await platform.ask(`GET ${PROMETHEUS}/rules`)).body.data.groups, []);
    assert.equal((await platform.ask(`DELETE ${RULES}/default`)).status, 204);
    assert.equal((await platform.ask(`GET ${PROMETHEUS}/rules`)).body.data.groups[0].name, "hangar");
    assert.equal((await platform.ask(`DELETE ${RULES}/default`)).status, 404);
  });

  test("a rule file that cannot be used is refused with every problem and its line", async (t) => {
    const platform = await testPlatform(t);
    const content = `groups:
  - name: a
    intervall: 1m
    rules:
      - alert: X
        expr: sum(
      - record: bad-name
        expr: up
        for: 5m
      - alert: Y
        expr: up
        annotations: {summary: '{{ $labels.x '}
  - name: a
    interval: 10 minutes
`;
    const { status, body } = await platform.ask(`PUT ${RULES}/broken`, { body: { content } });
    assert.equal(status, 400);
    const problems = body.details.map(({ problem }: { problem: string }) => problem.split("\n")[0]);
    for (const expected of [
      /line 3: .*did you mean interval/,
      /line 6: expr cannot be read/,
      /line 9: .*no for/,
      /line 7: "bad-name"/,
      /line 12: the template/,
      /line 14: .*no duration/,
      /line 13: .*twice/,
    ])
      assert.ok(
        problems.some((one: string) => expected.test(one)),
        `${expected} in ${problems.join("\n")}`,
      );
    for (const name of ["A", ".x", "a:b", "x".repeat(64)])
      assert.equal((await platform.ask(`PUT ${RULES}/${name}`, { body: { content: "groups: []" } })).status, 400, name);
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1,1]\n${"bcdefghij"
      .split("")
      .map((name, i) => `${name}: &${name} [${Array(10).fill(`*${"abcdefghij"[i]}`).join(",")}]`)
      .join("\n")}`;
    assert.equal((await platform.ask(`PUT ${RULES}/bomb`, { body: { content: bomb } })).status, 400);
  });
});
