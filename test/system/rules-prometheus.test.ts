/** The same rules over the same samples in Debian's Prometheus, live: the same alerts in each state, the same series. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { startProgram } from "../foreign-program.ts";
import { testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";

const PROMETHEUS = "/usr/bin/prometheus";

/** `for`, `keep_firing_for`, templates, labels that a rule adds and takes, one rule on what another records. */
const RULES = `groups:
- name: live
  interval: 1s
  rules:
  - {record: "path:errors:sum", expr: "sum by (path) (errors)", labels: {team: "web"}}
  - alert: AtOnce
    expr: path:errors:sum > 5
    labels: {severity: page, path: "{{ $labels.path }}!"}
    annotations: {summary: "{{ $value }} errors of {{ $labels.path }}, {{ humanize $value }}", team: "{{ .Labels.team }}"}
  - alert: Later
    expr: errors > 5
    for: 3s
    labels: {n: "{{ printf \\"%.1f\\" $value }}"}
    annotations: {all: '{{ range query "path:errors:sum" }}{{ .Labels.path }};{{ end }}'}
  - {alert: Kept, expr: "errors > 5", keep_firing_for: 4s}
  - {alert: Gone, expr: "absent(errors{path=\\"/none\\"})", labels: {severity: info}}
  - {alert: Never, expr: "errors > 1e+09", for: 1h, annotations: {summary: "x"}}
- name: second
  interval: 1s
  rules:
  - {record: "alerts:count", expr: "count by (alertname, alertstate) (ALERTS)"}
  - {record: "broken", expr: "label_replace(errors, \\"path\\", \\"\\", \\"\\", \\"\\") * 0"}
`;

/** The platform has its default rules too. */
const GROUPS = ["live", "second"];

interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: string;
  value: string;
}

type Get = (path: string) => Promise<{ data: Record<string, unknown[]> }>;

const text = (value: unknown): string => JSON.stringify(value);
const inOrder = (object: object): [string, unknown][] =>
  Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1));

/** Who is in which state, in one order. When it became so differs by the time of the evaluation. */
async function alerts(get: Get): Promise<string[]> {
  const all = (await get("/api/v1/alerts")).data["alerts"] as Alert[];
  return all
    .map(({ labels, annotations, state, value }) => text([inOrder(labels), inOrder(annotations), state, Number(value)]))
    .sort();
}

interface Rule {
  alerts?: unknown[];
}

const TIMES = new Set(["lastEvaluation", "evaluationTime"]);

/** Rules as they are listed, without times. */
async function rules(get: Get): Promise<unknown[]> {
  const groups = (await get("/api/v1/rules")).data["groups"] as { name: string; interval: number; rules: Rule[] }[];
  return groups
    .filter(({ name }) => GROUPS.includes(name))
    .map(({ name, interval, rules: listed }) => ({
      name,
      interval,
      rules: listed.map((rule) =>
        inOrder({ ...rule, alerts: rule.alerts?.length ?? 0 }).filter(([key]) => !TIMES.has(key)),
      ),
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function names(get: Get, query: string): Promise<string[]> {
  const found = (await get(`/api/v1/query?query=${encodeURIComponent(query)}`)).data["result"] as { metric: object }[];
  return found.map(({ metric }) => text(inOrder(metric))).sort();
}

/** Errors by path, which the test sets. */
async function exposed(t: TestContext): Promise<{ target: string; set(values: Record<string, number>): void }> {
  let body = "";
  const server = createServer((_, response) => void response.end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return {
    target: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    set(values) {
      body = Object.entries(values)
        .map(([path, value]) => `errors{path="${path}"} ${value}\n`)
        .join("");
    },
  };
}

suite("rules beside Prometheus", { skip: !existsSync(PROMETHEUS) && "needs prometheus", timeout: 240_000 }, () => {
  test("alerts are pending, firing, kept and gone alike, with the same texts, and the same series are recorded", async (t) => {
    const platform = await testPlatform(t);
    const token = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token as string;
    const { target, set } = await exposed(t);
    set({ "/a": 1, "/b": 2 });
    const [dir, port] = [tempDir(), await freePort()];
    const write = `${platform.base_url}/prometheus/personal/api/v1/write`;
    // Only what was scraped is pushed: here, the platform records its own series.
    const keep = '[{source_labels: [__name__], regex: "errors", action: keep}]';
    writeFileSync(join(dir, "rules.yml"), RULES);
    writeFileSync(
      join(dir, "p.yml"),
      `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs: [{job_name: own, static_configs: [{targets: ["${target}"]}]}]
remote_write: [{url: "${write}", authorization: {credentials: "${token}"}, queue_config: {batch_send_deadline: 1s}, write_relabel_configs: ${keep}}]
`,
    );
    const options = [`--config.file=${dir}/p.yml`, `--storage.tsdb.path=${dir}/data`];
    startProgram(t, PROMETHEUS, [...options, `--web.listen-address=127.0.0.1:${port}`]);
    const put = await platform.ask("PUT /v1/orgs/personal/alerts/rules/live", { body: { content: RULES } });
    assert.equal(put.status, 200, put.text);

    const getFrom =
      (base: string, headers: Record<string, string> = {}): Get =>
      async (path) =>
        (await (await fetch(`${base}${path}`, { headers })).json()) as Awaited<ReturnType<Get>>;
    const theirs = getFrom(`http://127.0.0.1:${port}`);
    const ours = getFrom(`${platform.base_url}/prometheus/personal`, { authorization: `Bearer ${platform.token}` });

    /** Both have the alerts of a phase, which `is` recognizes in theirs. */
    const alike = async (phase: string, is: (all: readonly string[]) => boolean): Promise<void> => {
      let seen: [string[], string[]] = [[], []];
      await until(
        phase,
        async () => {
          seen = await Promise.all([alerts(theirs), alerts(ours)]).catch(() => seen);
          return is(seen[0]) && text(seen[0]) === text(seen[1]);
        },
        { every_ms: 200, limit_ms: 40_000 },
      ).catch((thrown: unknown) => {
        assert.deepEqual(seen[1], seen[0], phase);
        throw thrown;
      });
    };
    const count = (all: readonly string[], alertname: string, state: string): number =>
      all.filter((alert) => alert.includes(`["alertname","${alertname}"]`) && alert.includes(`"${state}"`)).length;

    await alike("only what is absent fires", (all) => all.length === 1 && count(all, "Gone", "firing") === 1);
    set({ "/a": 7.25, "/b": 2, "/ü": 1e6 });
    await alike("two fire", (all) => ["AtOnce", "Later", "Kept"].every((name) => count(all, name, "firing") === 2));
    assert.deepEqual(await rules(ours), await rules(theirs));
    set({ "/a": 9, "/b": 2 });
    await alike(
      "one is gone, and the other has another value",
      (all) => count(all, "Later", "firing") === 1 && count(all, "Kept", "firing") === 1,
    );
    set({ "/a": 1, "/b": 2, "/none": 1 });
    await alike("nothing fires", (all) => all.length === 0);
    for (const name of ["ALERTS", "ALERTS_FOR_STATE", "path:errors:sum", "alerts:count", "broken"]) {
      const query = `last_over_time({__name__="${name}"}[10m])`;
      assert.deepEqual(await names(ours, query), await names(theirs, query), query);
    }
  });
});
