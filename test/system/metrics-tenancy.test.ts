/** T3: what an organization is told does not depend on what others have, byte for byte. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { type MetricsEngine, openMetricsEngine } from "#metrics/engine/engine.ts";
import { Choices } from "../differential/choices.ts";
import { DATA_END_MS, DATA_START_MS, recordedSeries, writeRequests } from "../differential/data.ts";
import { metricsqlQuery } from "../differential/metricsql-queries.ts";
import { promqlQuery } from "../differential/promql-queries.ts";
import { random, runs, seed, tempDir } from "../support.ts";

/** 500 at every push, 5,000 under `npm run prove`. */
const QUERIES = runs(500);
const LIMITS = { retention_ms: 100 * 365 * 86_400_000 };
const MINE = "mine";
const THEIRS = ["theirs", "mine-too", "MINE", "../mine"];

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

suite("organizations do not show through", () => {
  test(`${QUERIES} queries and all other questions, with others there and without (T3)`, {
    timeout: 600_000,
  }, async (t) => {
    const roll = random(seed(t));
    const alone = openMetricsEngine({ dir: tempDir(), clock: systemClock, limits: LIMITS });
    const among = openMetricsEngine({ dir: tempDir(), clock: systemClock, limits: LIMITS });
    t.after(() => Promise.all([alone.close(), among.close()]));
    const all = recordedSeries();
    const own = all.filter((_, i) => i % 2 === 0);
    await fill(alone, MINE, writeRequests(own));
    await fill(among, MINE, writeRequests(own));
    // The others have the same series with other values, and some that we have not.
    const foreign = all.map(({ labels, samples }) => ({
      labels: labels.map((text) => (text === "svc_instance_up" ? "secret_of_theirs" : text)),
      samples: samples.map(({ time, value }) => (value === undefined ? { time } : { time, value: value + 1 })),
    }));
    for (const org of THEIRS) await fill(among, org, writeRequests(foreign));

    const same = async (what: string, ask: (engine: MetricsEngine) => Promise<unknown>): Promise<string> => {
      const [first, second] = await Promise.all([told(ask(alone)), told(ask(among))]);
      assert.equal(second, first, what);
      assert.doesNotMatch(second, /theirs"|secret_of_theirs":|mine-too/, what);
      return second;
    };
    let found = 0;
    for (let n = 0; n < QUERIES; n++) {
      const dialect = n % 2 === 0 ? "metricsql" : "promql";
      const asked = (dialect === "metricsql" ? metricsqlQuery : promqlQuery)(new Choices(roll));
      const answer = await same(asked.query, (engine) => engine.query(MINE, { ...asked, dialect }));
      if (answer.includes('"metric"')) found++;
    }
    assert.ok(found > QUERIES / 10, `${found} of ${QUERIES} queries found something`);
    for (const query of TRIES) {
      const time = { start_ms: DATA_END_MS - 60_000, end_ms: DATA_END_MS - 60_000 };
      const bytes = await Promise.all([alone, among].map((engine) => told(engine.query(MINE, { query, ...time }))));
      assert.equal(bytes[1], bytes[0], query);
    }
    await otherQuestions(same);
    t.diagnostic(`${QUERIES} queries, ${found} with an answer, none different`);
  });
});

async function otherQuestions(
  same: (what: string, ask: (engine: MetricsEngine) => Promise<unknown>) => Promise<string>,
): Promise<void> {
  const scope = { start_ms: DATA_START_MS, end_ms: DATA_END_MS };
  const any = { selector: [[{ name: "__name__", op: "=~" as const, value: ".*" }]], ...scope };
  await same("series", (engine) => engine.series(MINE, any));
  await same("labels", (engine) => engine.labelNames(MINE, scope));
  await same("labels that match", (engine) => engine.labelNames(MINE, any));
  for (const name of ["__name__", "app", "instance", "org", "tenant"]) {
    await same(`values of ${name}`, (engine) => engine.labelValues(MINE, name, scope));
  }
  await same("federate", (engine) =>
    engine.federate(MINE, { selector: any.selector, at_ms: DATA_END_MS, lookback_ms: 300_000 }),
  );
  await same("metadata", (engine) => engine.metadata(MINE));
  await same("status", async (engine) => {
    const { storage: _ours, ...counts } = await engine.status(MINE, { focus_label: "app" });
    return counts;
  });
}

async function fill(engine: MetricsEngine, org: string, bodies: readonly Buffer[]): Promise<void> {
  for (const body of bodies) await engine.importRemoteWrite(org, Buffer.from(body));
}

/** An answer or a refusal, as text. */
async function told(answer: Promise<unknown>): Promise<string> {
  try {
    const value = await answer;
    return value instanceof Uint8Array ? Buffer.from(value).toString() : JSON.stringify(value);
  } catch (thrown) {
    return `refused: ${String(thrown)}`;
  }
}
