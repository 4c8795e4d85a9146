/**
 * 2,000 random queries against the packaged Prometheus and VictoriaMetrics, same samples on both sides. Both packages
 * are years old, so differences are allowed where a later version changed; each such change has a name here, and a
 * difference without one fails.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import {
  compareWithPeer,
  differentialData,
  type Explanation,
  metricsqlQuery,
  strictQuery,
  type Tally,
} from "../promql/differential.ts";
import { installed, startPrometheus, startVictoriaMetrics } from "../promql/peers.ts";
import { random, seed, tempDir } from "../support.ts";

/** The same queries every time, so that a new difference comes from a change of ours; proving runs choose anew. */
function start(t: TestContext): () => number {
  if (process.env["HANGAR_PROVE"] !== "1") process.env["SEED"] ??= "8";
  return random(seed(t));
}

const QUERIES = process.env["HANGAR_PROVE"] === "1" ? 10_000 : 1_000;

const PROMETHEUS: Explanation[] = [
  { name: "names are removed late", fits: (_, d) => /they fail: .*(same labelset|must ensure unique matches)/.test(d) },
  { name: "matching is checked before a comparison filters", fits: (_, d) => /we fail: multiple matches/.test(d) },
  { name: "windows were closed on the left", fits: (q) => /\[[^\]]*:[^\]]*\]/.test(q) },
  { name: "a counter is cut at zero after the window's edge is", fits: (q) => /(rate|increase)\((\{|temp)/.test(q) },
  {
    name: "the last digit of a trigonometric function",
    fits: (q, d) =>
      /(==|!=|>|<|%|floor|ceil|round)/.test(q) && /they -?\d/.test(d) && /atan|tanh|sin|cos|log|exp/.test(q),
  },
];

const VICTORIA: Explanation[] = [
  { name: "a function that is not there yet", fits: (_, d) => /they fail: .*(unsupported|unknown) func/.test(d) },
  {
    name: "a window that is given is no longer stretched",
    fits: (q) => /(rate|deriv|deriv_fast|ideriv|irate|scrape_interval|timestamp)\([^)]*\[/.test(q),
  },
  {
    name: "an empty window no longer repeats the value before it",
    fits: (q) =>
      /(distinct|geomean|rate_over_sum|sum2|zscore_over_time|integrate|mode_over_time|increase_pure)/.test(q),
  },
  {
    name: "a partial restart adds the fall alone",
    fits: (q) => /(rate|increase|increase_pure|irate)\((\{|temp)/.test(q),
  },
  { name: "comparing with a missing value gives nothing", fits: (q) => />|<|==|!=/.test(q) },
  { name: "the newest gaps say how often a series is scraped, not the oldest", fits: (q) => /temp/.test(q) },
  { name: "filters are pushed into the other side of an operator", fits: (q) => /default|ifnot|unless/.test(q) },
  { name: "which of equal series comes first", fits: (q) => /(topk|bottomk)_/.test(q) },
  {
    name: "an argument was lost in sums of quantiles",
    fits: (_, d) => /they fail: .*expecting at least 2 args/.test(d),
  },
];

function report(t: { diagnostic(message: string): void }, tally: Tally): void {
  const explained = [...tally.explained].map(([name, n]) => `${n} × ${name}`).join("; ");
  t.diagnostic(`${tally.equal} equal, ${tally.bothFail} fail on both sides; ${explained || "nothing to explain"}`);
}

suite("answers equal those of the peers", () => {
  test("Prometheus", async (t) => {
    if (!installed("prometheus") || !installed("promtool")) {
      t.skip("the package prometheus is not installed");
      return;
    }
    const next = start(t);
    const data = differentialData(next);
    const peer = await startPrometheus(t, tempDir(t), data);
    const tally = await compareWithPeer({
      peer,
      dialect: "promql",
      data,
      random: next,
      queries: QUERIES,
      generate: strictQuery,
      explanations: PROMETHEUS,
    });
    report(t, tally);
    assert.deepEqual(tally.unexplained, []);
    assert.ok(tally.equal > QUERIES * 0.7, `${tally.equal} of ${QUERIES}`);
  });

  test("VictoriaMetrics", async (t) => {
    if (!installed("victoria-metrics")) {
      t.skip("the package victoria-metrics is not installed");
      return;
    }
    const next = start(t);
    const data = differentialData(next);
    const peer = await startVictoriaMetrics(t, tempDir(t), data);
    const tally = await compareWithPeer({
      peer,
      dialect: "metricsql",
      data,
      random: next,
      queries: QUERIES,
      generate: metricsqlQuery,
      explanations: VICTORIA,
    });
    report(t, tally);
    assert.deepEqual(tally.unexplained, []);
    assert.ok(tally.equal > QUERIES * 0.7, `${tally.equal} of ${QUERIES}`);
  });
});
