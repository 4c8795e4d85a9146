/** T3: responses to an organization's token do not depend on other organizations' data, byte for byte. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type { Asked } from "../differential/choices.ts";
import { DATA_END_MS, DATA_START_MS, recordedSeries, writeRequests } from "../differential/data.ts";
import { randomQuery } from "../differential/queries.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { random, runs, seed } from "../support.ts";

const QUERIES = runs(80, 5_000, 20_000);
const MINE = "mine";
const THEIRS = ["theirs", "mine-too", "not-mine"];

/** Tries to name the others in every place that takes a name. */
const TRIES = [
  '{__name__=~".*"}',
  '{org="theirs"}',
  '{__name__!=""} or {tenant="theirs"}',
  'label_set(svc_instance_up, "org", "theirs")',
  'label_replace({__name__=~"svc_.+"}, "org", "theirs", "", "")',
  'count({__name__=~".+"}) by (__name__)',
  'sum(count_over_time({__name__!=""}[6h]))',
  "absent(secret_of_theirs)",
  "secret_of_theirs",
];

/** What a hostile caller makes of a query, to get at what others have: in the text, and in fields beside it. */
const TWISTS: ((query: string) => [query: string, fields?: Record<string, string>])[] = [
  (query) => [query],
  (query) => [`(${query}) or {hangar_org="theirs"}`],
  (query) => [`(${query}) or {__name__=~"secret.*" or org="theirs"}`],
  (query) => [query.replace("{", '{hangar_org="theirs",')],
  (query) => [query.replaceAll("svc_instance_up", "secret_of_theirs")],
  (query) => [`label_set(${query}, "hangar_org", "theirs")`],
  (query) => [`WITH (x = {hangar_org=~".*", __name__=~".+"}) count(x) by (hangar_org, org) or (${query})`],
  (query) => [query, { extra_label: "hangar_org=theirs" }],
  (query) => [query, { "extra_filters[]": '{hangar_org="theirs"}', tenant: "theirs", org: "theirs" }],
];

/** A platform that one organization is asked about, with that organization's own token. */
interface Tenant {
  ask(path: string, fields?: Record<string, string>): Promise<string>;
}

async function platformWith(t: TestContext, fill: Record<string, readonly Buffer[]>): Promise<Tenant> {
  const platform = await testPlatform(t, { HANGAR_METRICS_RETENTION_DAYS: "36500" });
  for (const [name, bodies] of Object.entries(fill)) {
    const { id } = (await platform.ask("POST /v1/orgs", { body: { name } })).body;
    for (const body of bodies) await platform.metrics().importRemoteWrite(id, Buffer.from(body));
  }
  const made = await platform.ask(`POST /v1/orgs/${MINE}/tokens`, { body: { kind: "readonly" } });
  return { ask: (path, fields = {}) => told(platform, made.body.token, path, fields) };
}

/** An answer or a refusal, as text. */
async function told(platform: TestPlatform, token: string, path: string, fields: Record<string, string>) {
  const url = `/prometheus/${MINE}${path}?${new URLSearchParams(fields).toString()}`;
  const { status, text } = await platform.ask(`GET ${url}`, {
    token: null,
    headers: { authorization: `SvcV1 ${token}` },
  });
  // The only part of any answer that is about the request and not about what is stored.
  return `${status} ${text.replaceAll(/"request_id":"[^"]*"/g, "")}`;
}

suite("metrics isolation between organizations", () => {
  test(`${QUERIES} queries and all other requests give the same with and without other organizations (T3)`, {
    timeout: 3_600_000,
  }, async (t) => {
    const roll = random(seed(t));
    const all = recordedSeries();
    const own = writeRequests(all.filter((_, i) => i % 2 === 0));
    // The others have the same series with other values, and some that we have not.
    const foreign = writeRequests(
      all.map(({ labels, samples }) => ({
        labels: labels.map((text) => (text === "svc_instance_up" ? "secret_of_theirs" : text)),
        samples: samples.map(({ time, value }) => (value === undefined ? { time } : { time, value: value + 1 })),
      })),
    );
    const alone = await platformWith(t, { [MINE]: own });
    const among = await platformWith(t, {
      ...Object.fromEntries(THEIRS.map((name) => [name, foreign])),
      [MINE]: own,
    });
    const same = async (path: string, fields: Record<string, string> = {}): Promise<string> => {
      const [first, second] = await Promise.all([alone.ask(path, fields), among.ask(path, fields)]);
      const what = `${path} ${JSON.stringify(fields)}`;
      assert.equal(second, first, what);
      return second;
    };
    let found = 0;
    for (let n = 0; n < QUERIES; n++) {
      const dialect = n % 2 === 0 ? "metricsql" : "promql";
      const asked = randomQuery(dialect, roll);
      const twist = TWISTS[Math.floor(roll() * TWISTS.length)] ?? TWISTS[0];
      const [query, more] = twist?.(asked.query) ?? [asked.query];
      const [path, fields] = questionOf({ ...asked, query }, dialect);
      const answer = await same(path, { ...fields, ...more });
      // What the query itself names may stand in the answer, and in what is said about a mistake.
      if (!query.includes("theirs")) assert.doesNotMatch(answer, /theirs"|secret_of_theirs":|mine-too/, query);
      if (answer.includes('"metric"')) found++;
    }
    assert.ok(found > QUERIES / 10, `${found} of ${QUERIES} queries found something`);
    for (const query of TRIES) await same("/api/v1/query", { query, time: seconds(DATA_END_MS - 60_000) });
    await otherQuestions(same);
    t.diagnostic(`${QUERIES} queries, ${found} with an answer, none different`);
  });
});

const seconds = (ms: number): string => String(ms / 1000);

function questionOf({ query, start_ms, end_ms, step_ms }: Asked, dialect: string): [string, Record<string, string>] {
  if (step_ms === undefined) return ["/api/v1/query", { query, dialect, time: seconds(end_ms) }];
  const grid = { start: seconds(start_ms), end: seconds(end_ms), step: seconds(step_ms) };
  return ["/api/v1/query_range", { query, dialect, ...grid }];
}

async function otherQuestions(same: (path: string, fields?: Record<string, string>) => Promise<string>): Promise<void> {
  const scope = { start: seconds(DATA_START_MS), end: seconds(DATA_END_MS) };
  const any = { ...scope, "match[]": '{__name__=~".+"}' };
  assert.match(await same("/api/v1/series", any), /svc_instance_cpu/);
  assert.match(await same("/api/v1/labels", scope), /instance/);
  await same("/api/v1/labels", any);
  for (const name of ["__name__", "app", "instance", "org", "tenant"]) {
    await same(`/api/v1/label/${name}/values`, scope);
    await same(`/api/v1/label/${name}/values`, any);
  }
  await same("/federate", any);
  await same("/api/v1/format_query", { query: "sum(a)by(b)" });
  for (const path of ["metadata", "targets", "rules", "alerts", "query_exemplars", "status/buildinfo"])
    await same(`/api/v1/${path}`);
  const counts = JSON.parse((await same("/api/v1/status/tsdb", { focusLabel: "app" })).slice("200 ".length)) as object;
  assert.ok(JSON.stringify(counts).includes("svc_instance_cpu"));
}
