/** The query API as Prometheus' clients and Grafana use it: the same for the embedded engine and for one elsewhere. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import type { TestPlatform } from "./platform.ts";

interface ApiRig {
  platform(t: TestContext): Promise<TestPlatform>;
  /** Resolves when what was appended can be asked for. */
  visible(platform: TestPlatform): Promise<void>;
  /** The engine's limits are ours, with our words. */
  own_limits: boolean;
}

const STEP = 15_000;

/** An hour of requests of two apps, in the organization `personal`. */
async function withRequests(platform: TestPlatform, harness: ApiRig): Promise<number> {
  const end = Math.floor(systemClock.now() / STEP) * STEP;
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id;
  const samples = ["web", "api"].flatMap((app, i) =>
    Array.from({ length: 240 }, (_, n) => ({
      labels: labelsOf({ __name__: "svc_edge_http_responses_count", app, region: "local", status: "200" }),
      timestamp: end - (239 - n) * STEP,
      value: n * 30 * (i + 1),
    })),
  );
  await platform.metrics().append(org, seriesBatch(samples));
  await harness.visible(platform);
  return end / 1000;
}

const BASE = "/prometheus/personal/api/v1";
const form = (
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): { body: string; headers: Record<string, string> } => ({
  body: new URLSearchParams(fields).toString(),
  headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
});

/** Everything that answers with series, asked for all there are. */
const ALL = '{__name__!=""}';
const QUESTIONS: { path: string; fields: Record<string, string> }[] = [
  { path: "/api/v1/query", fields: { query: ALL } },
  { path: "/api/v1/series", fields: { "match[]": ALL } },
  { path: "/api/v1/labels", fields: {} },
  { path: "/api/v1/label/__name__/values", fields: {} },
  { path: "/api/v1/label/app/values", fields: { "match[]": ALL } },
  { path: "/api/v1/status/tsdb", fields: {} },
  { path: "/federate", fields: { "match[]": ALL } },
];

/** Fields that engines know, or that somebody could think they do. */
const forgeries = (org: string): Record<string, string>[] => [
  {},
  { extra_label: `hangar_org=${org}` },
  { "extra_filters[]": '{hangar_org=~".*"}' },
  { extra_filters: `{hangar_org="${org}"}`, extra_label: "hangar_org=" },
  { "match[]": `{hangar_org="${org}"}`, query: `{hangar_org="${org}"}` },
  { "match[]": '{hangar_org=~".+" or app!=""}', query: 'WITH (x = {hangar_org=~".*"}) x' },
  { org, org_id: org, org_slug: "personal", tenant: org, accountID: "0" },
];

export function metricsApiSuite(name: string, harness: ApiRig): void {
  suite(`metrics query API, ${name}`, () => {
    test("query and query_range accept GET and POST forms and respond in the standard format", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      const query = "sum by (app) (rate(svc_edge_http_responses_count[5m]))";
      const expected = [
        { metric: { app: "api" }, value: [time, "4"] },
        { metric: { app: "web" }, value: [time, "2"] },
      ];
      const got = await platform.ask(`GET ${BASE}/query?${form({ query, time: String(time) }).body}`);
      assert.deepEqual(got.body, { status: "success", data: { resultType: "vector", result: expected } });
      const posted = await platform.ask(`POST ${BASE}/query`, form({ query, time: String(time) }));
      assert.deepEqual(posted.body, got.body);
      const range = await platform.ask(
        `POST ${BASE}/query_range`,
        form({ query, start: String(time - 300), end: String(time), step: "1m" }),
      );
      assert.equal(range.body.data.resultType, "matrix");
      assert.equal(range.body.data.result[0].values.length, 6);
      // Grafana's own test of a data source.
      const one = await platform.ask(`GET ${BASE}/query?query=1%2B1&time=4`);
      assert.equal(one.body.data.result[0].value[1], "2");
    });

    test("MetricsQL extensions work: rate without brackets, label_set, topk_avg", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      const ask = async (query: string) =>
        (
          await platform.ask(
            `GET ${BASE}/query_range?${form({ query, start: String(time - 600), end: String(time), step: "60" }).body}`,
          )
        ).body.data.result;
      assert.equal((await ask("rate(svc_edge_http_responses_count)")).length, 2);
      assert.equal((await ask('label_set(svc_edge_http_responses_count, "team", "x")'))[0].metric.team, "x");
      const top = await ask('topk_avg(1, svc_edge_http_responses_count, "other")');
      assert.deepEqual(
        top.map((row: { metric: Record<string, string> }) => row.metric["other"] ?? row.metric["app"]).sort(),
        ["api", "other"],
      );
      assert.equal((await ask("drop_common_labels(svc_edge_http_responses_count)"))[0].metric.region, undefined);
    });

    test("series, labels, label values, status, federate and metadata work as Grafana calls them", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      const get = async (path: string) => (await platform.ask(`GET ${BASE}${path}`)).body.data;
      assert.equal((await get("/series?match[]=svc_edge_http_responses_count")).length, 2);
      assert.equal((await get('/series?match[]=%7Bapp%3D"web"%7D&match[]=nothing')).length, 1);
      assert.deepEqual(await get("/labels"), ["__name__", "app", "region", "status"]);
      assert.deepEqual(await get("/label/app/values"), ["api", "web"]);
      assert.deepEqual(await get(`/label/app/values?start=${time - 100}&end=${time}&limit=1`), ["api"]);
      assert.equal((await get("/status/tsdb?topN=5")).totalSeries, 2);
      assert.equal((await get("/status/buildinfo")).version, "2.45.0");
      assert.deepEqual([await get("/alerts"), await get("/query_exemplars?query=up")], [{ alerts: [] }, []]);
      const [[name, [facts]]] = Object.entries(await get("/metadata")) as [[string, [{ type: string }]]];
      assert.deepEqual([name, facts.type], ["svc_edge_http_responses_count", "counter"]);
      assert.equal(await get("/format_query?query=sum(a)by(b)"), "sum(a) by(b)");
      assert.equal((await get("/parse_query?query=sum(a)by(b)")).type, "aggregation");
      const wrong = await platform.ask(`GET ${BASE}/parse_query?query=sum(`);
      assert.deepEqual([wrong.status, wrong.body.errorType], [400, "bad_data"]);
      const federated = await platform.ask('GET /prometheus/personal/federate?match[]={app="web"}');
      assert.match(federated.text, /svc_edge_http_responses_count\{app="web",region="local",status="200"\} 7170 \d+/);
    });

    test("limit truncates the result with Prometheus' warning; 0 and empty are no limit", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      const range = `start=${time - 60}&end=${time}`;
      const metric = "svc_edge_http_responses_count";
      const warnings = ["results truncated due to limit"];
      const questions: [string, number, (data: { result?: unknown[] } & unknown[]) => unknown[]][] = [
        [`/query?query=${metric}&time=${time}`, 2, ({ result = [] }) => result],
        [`/query_range?query=${metric}&step=15&${range}`, 2, ({ result = [] }) => result],
        [`/series?match[]=${metric}&${range}`, 2, (data) => data],
        [`/labels?${range}`, 4, (data) => data],
        [`/label/app/values?${range}`, 2, (data) => data],
      ];
      for (const [path, all, listOf] of questions) {
        for (const limit of ["", "0", String(all), String(all + 1)]) {
          const { body, text } = await platform.ask(`GET ${BASE}${path}&limit=${limit}`);
          assert.deepEqual([listOf(body.data).length, body.warnings], [all, undefined], `${path} ${limit} ${text}`);
        }
        const { body, text } = await platform.ask(`GET ${BASE}${path}&limit=1`);
        assert.deepEqual([listOf(body.data).length, body.warnings], [1, warnings], `${path} ${text}`);
        assert.equal((await platform.ask(`GET ${BASE}${path}&limit=-1`)).status, 400, path);
      }
    });

    test("empty parameters count as absent, in the URL and in a form", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      const base = { query: "svc_edge_http_responses_count" };
      const questions: [string, Record<string, string>][] = [
        ["/query", { ...base, time: "", timeout: "", limit: "", dialect: "", nocache: "" }],
        ["/query_range", { ...base, start: String(time - 60), end: String(time), step: "15", timeout: "", limit: "" }],
        ["/series", { "match[]": base.query, start: "", end: "", limit: "" }],
        ["/labels", { start: "", end: "", limit: "" }],
      ];
      for (const [path, fields] of questions) {
        const asked = await platform.ask(`GET ${BASE}${path}?${new URLSearchParams(fields).toString()}`);
        assert.equal(asked.status, 200, `${path}: ${asked.text}`);
        const posted = await platform.ask(`POST ${BASE}${path}`, form(fields));
        assert.equal(posted.status, 200, `${path}: ${posted.text}`);
      }
      for (const path of ["/metadata?metric=&limit=", "/status/tsdb?topN=&focusLabel=", "/label/app/values?limit="]) {
        const { status, text } = await platform.ask(`GET ${BASE}${path}`);
        assert.equal(status, 200, `${path}: ${text}`);
      }
      assert.equal((await platform.ask(`GET ${BASE}/query?query=`)).status, 400, "a query is required");
    });

    test("errors have Prometheus' format and a position", async (t) => {
      const platform = await harness.platform(t);
      const cases: [string, number, string, RegExp][] = [
        [`${BASE}/query?query=sum(`, 400, "bad_data", /1:5: parse error/],
        [`${BASE}/query`, 400, "bad_data", /query.query is required/],
        [`${BASE}/query?query=1&time=yesterday`, 400, "bad_data", /"yesterday" is not seconds/],
        [`${BASE}/query_range?query=1&start=0&end=100&step=0`, 400, "bad_data", /"step"/],
        [`${BASE}/series`, 400, "bad_data", /match\[\] is required/],
        [`${BASE}/series?match[]=1%2B1`, 400, "bad_data", /takes selectors/],
        ["/prometheus/nowhere/api/v1/query?query=1", 404, "not_found", /no organization/],
      ];
      const points: (typeof cases)[number] = [
        `${BASE}/query_range?query=1&start=0&end=99999999&step=1`,
        400,
        "bad_data",
        /points_per_series/,
      ];
      for (const [path, status, errorType, text] of [...cases, ...(harness.own_limits ? [points] : [])]) {
        const answer = await platform.ask(`GET ${path}`);
        assert.deepEqual(
          [answer.status, answer.body.status, answer.body.errorType],
          [status, "error", errorType],
          path,
        );
        assert.match(answer.body.error, text, path);
      }
      assert.equal((await platform.ask(`GET ${BASE}/query?query=1`, { token: null })).body.errorType, "unauthorized");
      assert.equal((await platform.ask(`POST ${BASE}/read`)).status, 400);
    });

    test("an organization's token sees its own series only", async (t) => {
      const platform = await harness.platform(t);
      const time = await withRequests(platform, harness);
      await platform.ask("POST /v1/orgs", { body: { name: "other" } });
      const token: string = (await platform.ask("POST /v1/orgs/other/tokens", { body: { kind: "readonly" } })).body
        .token;
      const headers = { authorization: `SvcV1 ${token}` };
      const own = await platform.ask(
        `GET /prometheus/other/api/v1/query?query=svc_edge_http_responses_count&time=${time}`,
        { token: null, headers },
      );
      assert.deepEqual(own.body.data.result, []);
      assert.equal((await platform.ask(`GET ${BASE}/query?query=up`, { token: null, headers })).status, 404);
    });

    test("no field, header or label of a request reaches another organization's series", async (t) => {
      const platform = await harness.platform(t);
      await withRequests(platform, harness);
      const theirs: string = (await platform.ask("GET /v1/orgs/personal")).body.id;
      const own: string = (await platform.ask("POST /v1/orgs", { body: { name: "other" } })).body.id;
      const text = { format: "prometheus", timestamp_ms: systemClock.now() - 1000 } as const;
      await platform.metrics().importText(own, Buffer.from(`mine{hangar_org="${theirs}"} 1\n`), text);
      await harness.visible(platform);
      const made = await platform.ask("POST /v1/orgs/other/tokens", { body: { kind: "org" } });
      const headers = { authorization: `SvcV1 ${made.body.token}`, "x-scope-orgid": theirs, "x-tenant": theirs };
      let answered = 0;
      const tries = QUESTIONS.flatMap(({ path, fields }) =>
        forgeries(theirs).map((forged) => ({ url: `/prometheus/other${path}`, fields: { ...fields, ...forged } })),
      );
      for (const { url, fields } of tries) {
        const asked = `${url}?${form(fields).body}`;
        for (const { status, text: body } of [
          await platform.ask(`GET ${asked}`, { token: null, headers }),
          await platform.ask(`POST ${url}`, { token: null, ...form(fields, headers) }),
        ]) {
          if (status === 200 && body.includes("mine")) answered++;
          assert.doesNotMatch(body, /svc_edge_|"(web|api)"/, asked);
        }
      }
      assert.ok(answered >= 10, `${answered} answers had something of our own in them`);
    });
  });
}
