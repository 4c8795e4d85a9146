/** What docs/grafana has: every panel, variable and alert asks something that this platform answers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { bench, IMAGE } from "./machine-bench.ts";
import { aVolume, clockHere, rounds } from "./measured.ts";
import { until } from "./support.ts";

const FOLDER = join(import.meta.dirname, "../docs/grafana");
const DASHBOARDS = ["apps", "machines", "edge", "hosts", "volumes", "postgres"].map((name) => `${name}.json`);
const file = (name: string): string => readFileSync(join(FOLDER, name), "utf8");

interface Dashboard {
  uid: string;
  panels: { title: string; targets?: { expr: string }[] }[];
  templating: { list: { query: string | { query: string } }[] };
}

const dashboard = (name: string): Dashboard => JSON.parse(file(name)) as Dashboard;

interface Answer {
  status: string;
  data: { result: unknown[] } & string[];
}

/** Variables as Grafana puts them in when everything is chosen. */
const filled = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(app|instance)\b/g, ".*");

/** Whatever Grafana's data source asks, with the header that datasource.yml gives it. */
async function dataSource(t: TestContext): Promise<(path: string, fields: Record<string, string>) => Promise<Answer>> {
  const clock = clockHere();
  const platform = await bench(t, {}, { clock });
  const config = {
    image: IMAGE,
    services: [{ protocol: "tcp", internal_port: 8080 }],
    mounts: [{ volume: await aVolume(platform), path: "/data" }],
    metadata: { hangar_postgres_port: "5432" },
  };
  const { id } = (await platform.create({ region: "local", config })).body;
  await until("it runs", async () => (await platform.on(`GET ${id}`)).body.state === "started");
  const { id: ended } = (await platform.create({})).body;
  await until("it runs", async () => (await platform.on(`GET ${ended}`)).body.state === "started");
  await rounds(platform, clock, 3);
  await platform.on(`POST ${ended}/stop`);
  await until("it ended", async () => (await platform.on(`GET ${ended}`)).body.state === "stopped");
  await rounds(platform, clock, 2);
  const made = await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } });
  const end = clock.now() / 1000;
  return async (path, fields) => {
    const { body } = await platform.ask(`POST /prometheus/personal/api/v1/${path}`, {
      token: null,
      headers: { authorization: `SvcV1 ${made.body.token}`, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ start: String(end - 60), end: String(end), step: "15", ...fields }).toString(),
    });
    return body as Answer;
  };
}

suite("Grafana dashboards and alerts", () => {
  test("every panel of every dashboard shows data", async (t) => {
    const ask = await dataSource(t);
    const panels = DASHBOARDS.flatMap((name) => dashboard(name).panels.map((panel) => ({ name, ...panel })));
    let asked = 0;
    for (const { name, title, targets = [] } of panels) {
      const answers = await Promise.all(targets.map(({ expr }) => ask("query_range", { query: filled(expr) })));
      for (const answer of answers) assert.equal(answer.status, "success", `${name}, ${title}`);
      const shown = answers.filter(({ data }) => data.result.length > 0);
      assert.equal(shown.length > 0, targets.length > 0, `${name}, ${title}: nothing to show`);
      asked += targets.length;
    }
    assert.ok(asked > 30, `${asked} queries`);
  });

  test("every variable has values", async (t) => {
    const ask = await dataSource(t);
    const variables = DASHBOARDS.flatMap((name) => dashboard(name).templating.list);
    const queries = variables.flatMap(({ query }) => (typeof query === "string" ? [] : [query.query]));
    assert.ok(queries.length >= DASHBOARDS.length, `${queries.length} queries were found`);
    for (const query of queries) {
      const [, selector = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(filled(query)) ?? [];
      const { data } = await ask("series", { "match[]": selector });
      assert.ok(data.length > 0 && JSON.stringify(data).includes(`"${label}":`), query);
    }
  });

  test("every alert expression is accepted by the query endpoint", async (t) => {
    const ask = await dataSource(t);
    const rules = [...file("alerts.yml").matchAll(/alert: (\w+)\n +expr: (?:>\n((?: {10}.*\n)+)|(.*))/g)];
    assert.ok(rules.length >= 8, `${rules.length} rules were found`);
    for (const [, name, folded, line] of rules) {
      const query = (folded ?? line ?? "").replaceAll(/\s+/g, " ").trim();
      const answer = await ask("query", { query });
      assert.equal(answer.status, "success", `${name}: ${query}`);
      // What is compared exists, whether or not it is as bad as the alert wants it.
      const compared = query.replace(/ (?:==|[<>]) [\d.]+$/, "");
      assert.notEqual(compared, query, name);
      if (/svc_/.test(query))
        assert.ok((await ask("query_range", { query: compared })).data.result.length > 0, `${name}: ${compared}`);
    }
  });

  test("the data source points to the organization and has the dashboards' uid", () => {
    const source = file("datasource.yml");
    assert.match(source, /url: \$HANGAR_URL\/prometheus\/\$HANGAR_ORG\n/);
    const [, uid] = /uid: (\w+)/.exec(source) ?? [];
    for (const name of DASHBOARDS) assert.match(file(name), new RegExp(`"value": "${uid}"`), name);
    assert.equal(new Set(DASHBOARDS.map((name) => dashboard(name).uid)).size, DASHBOARDS.length);
  });
});
