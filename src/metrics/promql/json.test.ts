import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { EMPTY_HISTOGRAM } from "../histogram/histogram.ts";
import { instant, range, writeResult } from "./engine.ts";
import { memorySource } from "./memory-source.ts";

const source = memorySource([
  {
    labels: ["__name__", "up", "app", 'a"b\\\n'],
    timestamps: [0, 1500, 3000],
    values: [1, Number.POSITIVE_INFINITY, 1e-7],
  },
]);

suite("query results as JSON", () => {
  test("a matrix is written as Prometheus does", () => {
    const result = range({ query: "up", source, start_ms: 0, end_ms: 3000, step_ms: 1500, dialect: "promql" });
    assert.deepEqual(JSON.parse(writeResult(result).toString()), {
      status: "success",
      data: {
        resultType: "matrix",
        result: [
          {
            metric: { __name__: "up", app: 'a"b\\\n' },
            values: [
              [0, "1"],
              [1.5, "+Inf"],
              [3, "1e-7"],
            ],
          },
        ],
      },
    });
  });

  test("native histograms are written beside the numbers of a series", () => {
    const histogram = {
      ...EMPTY_HISTOGRAM,
      count: 6,
      sum: 2.5,
      zero_threshold: 0.5,
      zero_count: 1,
      positive: { indexes: [1, 2, 3], counts: [2, 0, 1] },
      negative: { indexes: [1], counts: [2] },
    };
    const mixed = memorySource([
      {
        labels: ["__name__", "m"],
        timestamps: [0, 1000],
        values: [7, Number.NaN],
        histograms: [undefined, histogram],
      },
    ]);
    const written = {
      count: "6",
      sum: "2.5",
      buckets: [
        [1, "-2", "-1", "2"],
        [3, "-0.5", "0.5", "1"],
        [0, "1", "2", "2"],
        [0, "4", "8", "1"],
      ],
    };
    const query = { query: "m", source: mixed, dialect: "promql" } as const;
    const metric = { __name__: "m" };
    const resultOf = (result: ReturnType<typeof range>): unknown =>
      (JSON.parse(writeResult(result).toString()) as { data: { result: unknown } }).data.result;
    assert.deepEqual(resultOf(range({ ...query, start_ms: 0, end_ms: 1000, step_ms: 1000 })), [
      { metric, values: [[0, "7"]], histograms: [[1, written]] },
    ]);
    assert.deepEqual(resultOf(instant({ ...query, time_ms: 1000 })), [{ metric, histogram: [1, written] }]);
    assert.deepEqual(resultOf(instant({ ...query, query: "m[2s]", time_ms: 1000 })), [
      { metric, values: [[0, "7"]], histograms: [[1, written]] },
    ]);
    const numbers = { ...query, dialect: "metricsql", time_ms: 1000 } as const;
    assert.deepEqual(resultOf(instant({ ...numbers, query: "m[2s]" })), [{ metric, values: [[0, "7"]] }]);
    assert.deepEqual(resultOf(instant(numbers)), [{ metric, value: [1, "7"] }]);
  });

  test("vectors, scalars, strings and empty results are written", () => {
    const text = (query: string, dialect: "promql" | "metricsql" = "promql"): string =>
      writeResult(instant({ query, source, time_ms: 1234, dialect })).toString();
    assert.match(text("up"), /"resultType":"vector","result":\[\{"metric":\{.*\},"value":\[1.234,"1"\]\}\]/);
    assert.match(text("1/0"), /"resultType":"scalar","result":\[1.234,"\+Inf"\]/);
    assert.match(text('"x\\n"'), /"resultType":"string","result":\[1.234,"x\\n"\]/);
    assert.match(text("none"), /"resultType":"vector","result":\[\]/);
    assert.match(
      text("1 + 1", "metricsql"),
      /"resultType":"vector","result":\[\{"metric":\{\},"value":\[1.234,"2"\]\}\]/,
    );
  });

  test("warnings and infos are written beside the data", () => {
    const result = instant({ query: "quantile(2, up)", source, time_ms: 0, dialect: "promql" });
    assert.match(
      writeResult(result).toString(),
      /\},"warnings":\["PromQL warning: quantile value should be between 0 and 1, got 2 \(1:10\)"\]\}$/,
    );
  });

  test("the cost of a query is written where Prometheus and VictoriaMetrics have it, when it is asked for", () => {
    const result = range({ query: "up + up", source, start_ms: 0, end_ms: 3000, step_ms: 1500 });
    const { data, stats } = JSON.parse(writeResult(result, true).toString());
    // The members of Prometheus 2.42.
    assert.deepEqual(Object.keys(data.stats), ["timings", "samples"]);
    assert.deepEqual(Object.keys(data.stats.timings), [
      "evalTotalTime",
      "resultSortTime",
      "queryPreparationTime",
      "innerEvalTime",
      "execQueueTime",
      "execTotalTime",
    ]);
    assert.equal(data.stats.samples.totalQueryableSamples, result.samples);
    assert.ok(result.samples >= 3 && data.stats.samples.peakSamples > 0);
    assert.equal(stats.seriesFetched, "2");
    assert.ok(stats.limits.samples > 0 && stats.executionTimeMsec >= 0);
    assert.equal(Object.hasOwn(JSON.parse(writeResult(result).toString()).data, "stats"), false);
  });

  test("every number is written with full precision", () => {
    const values = Float64Array.from([
      0.1 + 0.2,
      5e-324,
      1.7976931348623157e308,
      123456789012345680000,
      -0.000001,
      1 / 3,
    ]);
    const odd = memorySource([{ labels: ["__name__", "n"], timestamps: values.map((_, i) => i * 1000), values }]);
    const result = range({ query: "n", source: odd, start_ms: 0, end_ms: 5000, step_ms: 1000, dialect: "promql" });
    const body = JSON.parse(writeResult(result).toString()) as { data: { result: { values: [number, string][] }[] } };
    assert.deepEqual(
      body.data.result[0]?.values.map(([, text]) => Number(text)),
      [...values],
    );
  });
});
