/** What Grafana's Prometheus data source asks, in its order and form, and the same of Debian's Prometheus beside us. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";

const BASE = "/prometheus/personal";
const GROUPS = ["one", "two", "three"];
const RULES = `groups:\n${GROUPS.map(
  (name) =>
    `- name: ${name}\n  interval: 1s\n  rules:\n  - {alert: High, expr: "temperature > 1"}\n  - {record: "x:${name}", expr: temperature}\n`,
).join("")}`;

interface Answer {
  status: number;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  body: any;
}

type Ask = (path: string, form?: Record<string, string>) => Promise<Answer>;

/** Grafana sends questions as forms by POST, and lists by GET. */
const asker =
  (url: string, headers: Record<string, string> = {}): Ask =>
  async (path, form) => {
    const init = form ? { method: "POST", headers, body: new URLSearchParams(form) } : { headers };
    const answer = await fetch(`${url}/api/v1/${path}`, init);
    const text = await answer.text();
    const type = answer.headers.get("content-type") ?? "";
    return { status: answer.status, type, body: /json/.test(type) ? JSON.parse(text) : text };
  };

async function aDataSource(t: TestContext): Promise<{ platform: TestPlatform; ask: Ask }> {
  const platform = await testPlatform(t);
  const headers = { authorization: `Bearer ${platform.token}` };
  const pushed = await fetch(`${platform.base_url}${BASE}/api/v1/import/prometheus`, {
    method: "POST",
    headers,
    body: '# TYPE temperature gauge\n# HELP temperature Of a room.\ntemperature{room="a"} 20\ntemperature{room="b"} 21\nother 1\n',
  });
  assert.equal(pushed.status, 204);
  const put = await platform.ask("PUT /v1/orgs/personal/alerts/rules/rooms", { body: { content: RULES } });
  assert.equal(put.status, 200, put.text);
  return { platform, ask: asker(`${platform.base_url}${BASE}`, headers) };
}

suite("Grafana's calls", () => {
  test("the data source's test: version, then 1+1 by POST", async (t) => {
    const { ask } = await aDataSource(t);
    assert.match((await ask("status/buildinfo")).body.data.version, /^\d+\.\d+\.\d+$/);
    const time = String(Date.now() / 1000);
    const { status, body } = await ask("query", { query: "1+1", time });
    // MetricsQL, our default, has a vector where PromQL has a scalar; Grafana takes either.
    assert.deepEqual([status, body.status, body.data.result[0].value[1]], [200, "success", "2"]);
    const strict = await ask("query", { query: "1+1", time, dialect: "promql" });
    assert.deepEqual([strict.body.data.resultType, strict.body.data.result[1]], ["scalar", "2"]);
  });

  test("explore: labels, values, metadata, series and a range", async (t) => {
    const { ask } = await aDataSource(t);
    const end = Math.ceil(Date.now() / 1000) + 1;
    const range = { start: String(end - 300), end: String(end) };
    const scope = new URLSearchParams({ ...range, "match[]": "temperature" }).toString();
    assert.deepEqual((await ask(`labels?${scope}`)).body.data, ["__name__", "room"]);
    assert.deepEqual((await ask("labels", { ...range, "match[]": "temperature" })).body.data, ["__name__", "room"]);
    assert.deepEqual((await ask(`label/room/values?${scope}`)).body.data, ["a", "b"]);
    assert.deepEqual((await ask(`label/room/values?${scope}&limit=1`)).body.data, ["a"]);
    const metadata = (await ask("metadata?limit=5000")).body.data;
    assert.deepEqual([metadata.temperature[0].type, metadata.temperature[0].help], ["gauge", "Of a room."]);
    assert.equal((await ask("series", { ...range, "match[]": "temperature" })).body.data.length, 2);
    const { body } = await ask("query_range", { ...range, query: "sum(temperature)", step: "15" });
    assert.equal(body.data.resultType, "matrix");
    assert.equal(body.data.result[0].values.at(-1)[1], "41");
    assert.equal((await ask("parse_query", { query: "sum(temperature)" })).body.data.type, "aggregation");
    assert.equal((await ask("format_query", { query: "sum( temperature )" })).body.data, "sum(temperature)");
    assert.deepEqual((await ask("query_exemplars", { ...range, query: "temperature" })).body.data, []);
  });

  test("the alert list: by type, by group, and in pages", async (t) => {
    const { ask } = await aDataSource(t);
    await until("the rules are evaluated", async () => (await ask("alerts")).body.data.alerts.length === 6);
    const { groups } = (await ask("rules?type=alert&file[]=rooms")).body.data;
    assert.deepEqual(
      groups.map(({ name, rules }: { name: string; rules: { type: string }[] }) => [
        name,
        rules.map(({ type }) => type),
      ]),
      GROUPS.map((name) => [name, ["alerting"]]),
    );
    assert.deepEqual(
      (await ask("rules?rule_group[]=two")).body.data.groups.map(({ name }: { name: string }) => name),
      ["two"],
    );
    const seen: string[] = [];
    let token: string | undefined;
    do {
      const next = token === undefined ? "" : `&group_next_token=${token}`;
      const page = (await ask(`rules?group_limit=2${next}`)).body.data;
      seen.push(...page.groups.map(({ name }: { name: string }) => name));
      assert.ok(page.groups.length <= 2);
      token = page.groupNextToken;
    } while (token !== undefined);
    assert.deepEqual(seen, ["hangar", ...GROUPS], "the platform's own group, then ours");
    for (const wrong of [
      "group_limit=0",
      "group_limit=x",
      "group_next_token=abc",
      "group_limit=1&group_next_token=abc",
      "type=wrong",
    ]) {
      const { status, body } = await ask(`rules?${wrong}`);
      assert.deepEqual([status, body.status, body.errorType], [400, "error", "bad_data"], wrong);
    }
  });

  test("annotations: a range query whose points are events", async (t) => {
    const { ask } = await aDataSource(t);
    const end = Math.ceil(Date.now() / 1000) + 1;
    const { body } = await ask("query_range", {
      query: 'ALERTS{alertstate="firing"}',
      start: String(end - 300),
      end: String(end),
      step: "60",
    });
    assert.deepEqual([body.status, body.data.resultType], ["success", "matrix"]);
  });

  test("status pages and wrong questions have the form of Debian's Prometheus", {
    skip: !existsSync("/usr/bin/prometheus") && "needs prometheus",
  }, async (t) => {
    const { ask } = await aDataSource(t);
    const theirs = await aPrometheus(t);
    const same = [
      ["status/config", "status/flags", "status/runtimeinfo", "status/buildinfo", "status/tsdb", "status/walreplay"],
      [
        "targets",
        "targets/metadata",
        "targets?state=active",
        "scrape_pools",
        "alertmanagers",
        "rules",
        "alerts",
        "metadata",
      ],
      ["rules?type=wrong", "query?query=", "query?query=%7B", "query_range?query=up", "query_exemplars?query=%7B"],
      ["series", "label/a/values?match[]=%7B", "labels?match[]=%7B", "format_query?query=%7B", "query?query=1%2B1"],
    ].flat();
    for (const path of same) {
      const [ours, prometheus] = await Promise.all([ask(path), theirs(path)]);
      assert.equal(ours.status, prometheus.status, path);
      assert.match(ours.type, /^application\/json/, path);
      assert.equal(ours.body.status, prometheus.body.status, path);
      assert.equal(ours.body.errorType, prometheus.body.errorType, path);
      if (prometheus.status !== 200) assert.equal(typeof ours.body.error, "string", path);
      else assert.deepEqual(missing(prometheus.body.data, ours.body.data), [], path);
    }
    for (const path of ["nothing", "status/nothing"])
      assert.deepEqual([(await ask(path)).status, (await theirs(path)).status], [404, 404], path);
  });
});

/** Fields that a table of theirs has and ours lacks. */
function missing(theirs: unknown, ours: unknown): string[] {
  if (typeof theirs !== "object" || theirs === null || Array.isArray(theirs) || typeof ours !== "object") return [];
  // Flags, and metrics by name, are each server's own.
  const names = Object.keys(theirs).filter((name) => /^[a-zA-Z]+$/.test(name));
  return names.filter((name) => !Object.hasOwn(ours ?? {}, name));
}

async function aPrometheus(t: TestContext): Promise<Ask> {
  const dir = tempDir();
  const port = await freePort();
  writeFileSync(join(dir, "p.yml"), "global: {scrape_interval: 15s}\n");
  const child = spawn(
    "/usr/bin/prometheus",
    [
      `--config.file=${dir}/p.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: "ignore" },
  );
  t.after(async () => {
    child.kill();
    await once(child, "exit");
  });
  const url = `http://127.0.0.1:${port}`;
  await until("Prometheus is ready", async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true);
  return asker(url);
}
