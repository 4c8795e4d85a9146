/** Rollups over twelve samples, the expected numbers worked out by hand. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, seed } from "../../../test/support.ts";
import { putStale } from "../nan-bits.ts";
import { instant, range } from "./engine.ts";
import { memorySource } from "./memory-source.ts";
import { lastOfEach, slopeOfEach } from "./rollup/batches.ts";
import { derivative, last } from "./rollup/kernels.ts";
import { rollUp, rollUpAtOnce } from "./rollup/window.ts";

const SECOND = 1000;
/** Every 10 s from 10 s to 120 s; a counter that restarts after 60 s. */
const VALUES = [0, 4, 8, 12, 20, 30, 2, 6, 10, 10, 14, 24];
const counter = {
  labels: ["__name__", "c"],
  timestamps: Float64Array.from(VALUES, (_, i) => (i + 1) * 10 * SECOND),
  values: Float64Array.from(VALUES),
};

function ended(): typeof counter {
  const values = Float64Array.from([...VALUES.slice(0, 6), 0]);
  putStale(values, 6);
  return { labels: ["__name__", "ended"], timestamps: counter.timestamps.slice(0, 7), values };
}

const source = memorySource([
  counter,
  ended(),
  { ...counter, labels: ["__name__", "b"], values: counter.values.map((v) => 2 * v) },
]);

/** The value of the only series at a moment, undefined when there is none. */
function at(query: string, time_s: number, step_s = 300): number | undefined {
  const { data } = instant({ query, source, time_ms: time_s * SECOND, step_ms: step_s * SECOND });
  assert.equal(data.type, "vector");
  return data.type === "vector" ? data.series[0]?.values[0] : undefined;
}

suite("MetricsQL rollups", () => {
  test("windows are open on the left", () => {
    assert.equal(at("count_over_time(c[20s])", 40), 2, "30 s and 40 s, not 20 s");
    assert.equal(at("sum_over_time(c[30s])", 40), 4 + 8 + 12);
  });

  test("increase and rate start from the sample before the window", () => {
    assert.equal(at("increase(c[30s])", 60), 30 - 8, "from 30 s to 60 s");
    assert.equal(at("rate(c[30s])", 60), (30 - 8) / 30);
    assert.equal(at("delta(c[30s])", 60), 30 - 8);
  });

  test("a counter reset continues from the value before it", () => {
    assert.equal(at("increase(c[60s])", 120), 30 + 24 - 30, "30 at 60 s, 24 at 120 s after a restart");
    assert.equal(at("increase(c[50s])", 80), 6 + 30 - 8, "8 at 30 s, 36 at 80 s");
    assert.equal(at("resets(c[120s])", 120), 1);
  });

  test("a small decrease is a partial reset, and only the decrease is added", () => {
    const shared = memorySource([
      { ...counter, values: Float64Array.from([100, 101, 99, 103, 104, 105, 106, 107, 108, 109, 110, 111]) },
    ]);
    const { data } = instant({ query: "increase(c[110s])", source: shared, time_ms: 120 * SECOND });
    assert.equal(data.type === "vector" && data.series[0]?.values[0], 111 + 2 - 100);
  });

  test("a new series counts from zero if its first value is small", () => {
    assert.equal(at("increase(c[60s])", 20), 4, "0 at 10 s");
    const late = memorySource([{ ...counter, values: counter.values.map((v) => v + 5_000) }]);
    const { data } = instant({ query: "increase(c[60s])", source: late, time_ms: 20 * SECOND });
    assert.equal(data.type === "vector" && data.series[0]?.values[0], 4, "5,000 cannot have come from 0 by steps of 4");
  });

  test("the _prometheus variants ignore samples outside the window", () => {
    assert.equal(at("increase_prometheus(c[30s])", 60), 30 - 12);
    assert.equal(at("delta_prometheus(c[10s])", 60), undefined, "one sample");
    assert.equal(at("rate_prometheus(c[30s])", 60), (30 - 12) / 30);
    assert.equal(at("changes(c[30s])", 100), 2, "6 to 10, and 2 to 6 from before");
    assert.equal(at("changes_prometheus(c[30s])", 100), 1);
  });

  test("statistics over a window are computed", () => {
    assert.equal(at("avg_over_time(c[40s])", 60), (8 + 12 + 20 + 30) / 4 - 0);
    assert.equal(at("min_over_time(c[60s])", 120), 2);
    assert.equal(at("max_over_time(c[60s])", 60), 30);
    assert.equal(at("median_over_time(c[30s])", 60), 20);
    assert.equal(at("quantile_over_time(0.5, c[40s])", 60), 16);
    assert.equal(at("mode_over_time(c[50s])", 110), 10);
    assert.equal(at("distinct_over_time(c[30s])", 100), 2);
    assert.equal(at("stdvar_over_time(c[20s])", 60), 25);
    assert.equal(at("range_over_time(c[30s])", 60), 18);
    assert.equal(at("count_gt_over_time(c[60s], 10)", 60), 3);
    assert.equal(at("share_le_over_time(c[60s], 10)", 60), 0.5);
    assert.equal(at("tmax_over_time(c[120s])", 120), 60);
    assert.equal(at("tlast_change_over_time(c[30s])", 100), 90);
  });

  test("derivatives are computed", () => {
    assert.equal(at("ideriv(c[60s])", 60), 1);
    assert.equal(at("irate(c[60s])", 60), 1);
    assert.equal(at("idelta(c[60s])", 60), 10);
    assert.equal(at("deriv(c[30s])", 30), 0.4, "0, 4, 8 at 10 s apart");
    assert.ok(Math.abs((at("predict_linear(c[30s], 10)", 30) ?? 0) - 12) < 1e-9);
    assert.equal(
      at("integrate(c[20s])", 40),
      4 * 10 + 8 * 10,
      "the value before the window holds until its first sample",
    );
    assert.equal(at("lag(c[60s])", 65), 5);
    assert.equal(at("lifetime(c[60s])", 60), 50);
  });

  test("a missing window is long enough for two samples", () => {
    assert.equal(at("rate(c)", 60, 1), undefined, "an instant query: the step is the window");
    const { data } = range({ query: "rate(c)", source, start_ms: 30_000, end_ms: 40_000, step_ms: 1_000 });
    assert.ok(data.type === "matrix" && data.series[0]?.values.every((v) => Math.abs(v - 0.4) < 1e-12));
  });

  test("an ended series disappears at once; rollups still see its samples", () => {
    assert.equal(at("ended", 65), 30);
    assert.equal(at("ended", 71), undefined);
    assert.equal(at("sum_over_time(ended[60s])", 70), 4 + 8 + 12 + 20 + 30);
    assert.equal(at("stale_samples_over_time(ended[60s])", 70), 1);
  });

  test("functions that keep a series' meaning keep its name", () => {
    const labels = (query: string): string => {
      const { data } = instant({ query, source, time_ms: 60 * SECOND });
      return data.type === "vector" ? (data.series[0]?.labels.join(" ") ?? "") : "";
    };
    assert.equal(labels("max_over_time(c[1m])"), "__name__ c");
    assert.equal(labels("rate(c[1m])"), "");
    assert.equal(labels("rate(c[1m]) keep_metric_names"), "__name__ c");
    assert.equal(labels("rollup(c[1m], 'max')"), "__name__ c");
  });
});

test("rollups over all steps at once equal those computed step by step", (t) => {
  const next = random(seed(t));
  for (let round = 0; round < 200; round++) {
    let time = 0;
    const timestamps = Float64Array.from(
      { length: Math.floor(next() * 60) },
      () => (time += 1 + Math.floor(next() * 30_000)),
    );
    const samples = { timestamps, values: timestamps.map(() => Math.floor(next() * 100)), length: timestamps.length };
    const window_ms = next() < 0.5 ? 0 : Math.floor(next() * 120_000);
    const steps = {
      start_ms: 0,
      step_ms: 1 + Math.floor(next() * 40_000),
      points: 40,
      window_ms,
      adjusts: next() < 0.5,
      instant: false,
    };
    for (const [kernel, batch] of [
      [last, lastOfEach],
      [derivative, slopeOfEach],
    ] as const) {
      const single = new Float64Array(steps.points);
      const whole = new Float64Array(steps.points);
      rollUp(samples, steps, kernel, single);
      rollUpAtOnce(samples, steps, batch, whole);
      assert.deepEqual(whole, single);
    }
  }
});

suite("PromQL rollups", () => {
  const strict = (query: string, time_s: number): number | undefined => {
    const { data } = instant({ query, source, time_ms: time_s * SECOND, dialect: "promql" });
    return data.type === "vector" ? data.series[0]?.values[0] : undefined;
  };

  test("rate extrapolates to the ends of the window", () => {
    // 12 at 40 s, 20 at 50 s, 30 at 60 s; the window (30 s, 60 s] begins one interval before its first sample.
    assert.ok(Math.abs((strict("rate(c[30s])", 60) ?? 0) - (18 * (30 / 20)) / 30) < 1e-12);
    assert.ok(
      Math.abs((strict("increase(c[30s])", 65) ?? 0) - 18 * (25 / 20) - 0) < 18,
      "half an interval at the start",
    );
    assert.equal(strict("rate(c[10s])", 60), undefined);
  });

  test("NaN is a value in PromQL and missing in MetricsQL", () => {
    assert.ok(Number.isNaN(strict("0 * c / 0", 60)));
    assert.equal(at("0 * c / 0", 60), undefined);
  });
});
