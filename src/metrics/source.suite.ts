/** What every SampleSource must do. A source's own test file is one call of this. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { isStale, type Labels, type Matcher, type SampleSource, type Series, STALE_NAN } from "./source.ts";

export interface SuiteSeries {
  labels: Labels;
  timestamps: Float64Array;
  /** The staleness marker is in here as its bits; copy the column, not its numbers. */
  values: Float64Array;
}

export interface OpenedSource {
  source: SampleSource;
  close?: () => void | Promise<void>;
}

const MINUTE = 60_000;

function series(labels: Labels, count: number, first_ms: number, step_ms: number): SuiteSeries {
  const timestamps = Float64Array.from({ length: count }, (_, i) => first_ms + i * step_ms);
  return { labels, timestamps, values: timestamps.map((t, i) => t / 1000 + i * 0.5) };
}

/** Numbers that are easily lost on the way, the marker of the end of a series among them. */
function oddValues(): Float64Array {
  const values = Float64Array.of(0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 5e-324);
  new Uint32Array(values.buffer).set([2, 0x7ff00000], 10);
  return values;
}

const DATA: SuiteSeries[] = [
  series(["__name__", "up", "app", "api", "instance", "1"], 10, MINUTE, MINUTE),
  series(["__name__", "up", "app", "web", "instance", "1"], 10, MINUTE, MINUTE),
  series(["__name__", "up", "app", "web", "instance", "2"], 3, 20 * MINUTE, MINUTE),
  series(["__name__", "load", "app", "web"], 2_000, 0, 1_000),
  {
    labels: ["__name__", "odd", "kind", "values"],
    timestamps: Float64Array.of(1, 2, 3, 4, 5, 6, 7),
    values: oddValues(),
  },
];

function eq(name: string, value: string): Matcher {
  return { name, op: "=", value };
}

/** A fresh pair of columns, too small on purpose. */
function read(one: Series): { timestamps: number[]; values: Float64Array } {
  const columns = { timestamps: new Float64Array(1), values: new Float64Array(1), length: 0 };
  one.read(columns);
  return {
    timestamps: [...columns.timestamps.subarray(0, columns.length)],
    values: columns.values.subarray(0, columns.length),
  };
}

export function sampleSourceSuite(
  name: string,
  open: (data: SuiteSeries[]) => OpenedSource | Promise<OpenedSource>,
): void {
  suite(`sample source: ${name}`, () => {
    const all = { start_ms: 0, end_ms: 100 * MINUTE };

    async function withSource(run: (source: SampleSource) => void): Promise<void> {
      const { source, close } = await open(DATA);
      try {
        run(source);
      } finally {
        await close?.();
      }
    }

    function names(source: SampleSource, ...selector: Matcher[][]): string[] {
      return [...source.select({ selector, ...all })].map((one) => one.labels.join(" ")).sort();
    }

    test("every matcher of a conjunction must match", () =>
      withSource((source) => {
        assert.deepEqual(names(source, [eq("__name__", "up"), eq("app", "web"), eq("instance", "2")]), [
          "__name__ up app web instance 2",
        ]);
        assert.deepEqual(names(source, [eq("__name__", "up"), eq("app", "none")]), []);
      }));

    test("any of the conjunctions may match, and a series is returned once", () =>
      withSource((source) => {
        const found = names(source, [eq("app", "api")], [eq("__name__", "load")], [eq("__name__", "load")]);
        assert.deepEqual(found, ["__name__ load app web", "__name__ up app api instance 1"]);
      }));

    test("a matcher on an absent label sees the empty string", () =>
      withSource((source) => {
        assert.deepEqual(names(source, [eq("app", "web"), eq("instance", "")]), ["__name__ load app web"]);
        assert.deepEqual(names(source, [eq("app", "web"), { name: "instance", op: "!=", value: "" }]), [
          "__name__ up app web instance 1",
          "__name__ up app web instance 2",
        ]);
        assert.equal(names(source, [eq("app", "web"), { name: "instance", op: "=~", value: "|1" }]).length, 2);
      }));

    test("regular expressions match the whole value", () =>
      withSource((source) => {
        assert.deepEqual(names(source, [{ name: "__name__", op: "=~", value: "u" }]), []);
        assert.equal(names(source, [{ name: "__name__", op: "=~", value: "u.*" }]).length, 3);
        assert.deepEqual(names(source, [eq("__name__", "up"), { name: "app", op: "!~", value: "w.b" }]), [
          "__name__ up app api instance 1",
        ]);
      }));

    test("count is the number of series", () =>
      withSource((source) => {
        const found = source.select({ selector: [[eq("__name__", "up")]], ...all });
        assert.equal(found.count, [...found].length);
      }));

    test("samples come oldest first, both ends of the range included", () =>
      withSource((source) => {
        const selection = { selector: [[eq("__name__", "load")]], start_ms: 10_000, end_ms: 1_000_000 };
        const [one] = [...source.select(selection)];
        assert.ok(one);
        const { timestamps, values } = read(one);
        assert.deepEqual([timestamps.length, timestamps[0], timestamps.at(-1)], [991, 10_000, 1_000_000]);
        assert.ok(timestamps.every((time, i) => i === 0 || time > (timestamps[i - 1] ?? 0)));
        assert.equal(values[0], 10 + 10 * 0.5);
      }));

    test("a range without samples reads as empty", () =>
      withSource((source) => {
        const selection = { selector: [[eq("__name__", "up")]], start_ms: 15 * MINUTE, end_ms: 16 * MINUTE };
        for (const one of source.select(selection)) assert.equal(read(one).timestamps.length, 0);
      }));

    test("columns are reused for the next series", () =>
      withSource((source) => {
        const columns = { timestamps: new Float64Array(0), values: new Float64Array(0), length: 0 };
        const lengths = [...source.select({ selector: [[eq("__name__", "up")]], ...all })].map((one) => {
          one.read(columns);
          return columns.length;
        });
        assert.deepEqual(
          lengths.sort((a, b) => a - b),
          [3, 10, 10],
        );
      }));

    test("special numbers keep every bit, the staleness marker too", () =>
      withSource((source) => {
        const [one] = [...source.select({ selector: [[eq("__name__", "odd")]], ...all })];
        assert.ok(one);
        const { values } = read(one);
        assert.ok(Object.is(values[1], -0) && Number.isNaN(values[2]) && values[6] === 5e-324);
        const words = new Uint32Array(values.slice().buffer);
        assert.deepEqual([words[10], words[11]], [2, 0x7ff00000], "the marker of the end of a series");
        assert.notDeepEqual([words[4], words[5]], [2, 0x7ff00000], "an ordinary NaN is no marker");
        assert.deepEqual([values[3], values[4]], [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
      }));

    test("newest() returns the last sample of a window that is open on the left", () =>
      withSource((source) => {
        const [one] = [...source.select({ selector: [[eq("app", "api")]], ...all })];
        assert.ok(one);
        assert.deepEqual(one.newest(0, 5.5 * MINUTE), { timestamp: 5 * MINUTE, value: 302 });
        assert.deepEqual(one.newest(4 * MINUTE, 5 * MINUTE), { timestamp: 5 * MINUTE, value: 302 });
        assert.equal(one.newest(5 * MINUTE, 5.9 * MINUTE), undefined);
        assert.equal(one.newest(0, 0.5 * MINUTE), undefined);
      }));

    test("refs identify series and stay the same", () =>
      withSource((source) => {
        const refs = (): number[] =>
          [...source.select({ selector: [[eq("__name__", "up")]], ...all })]
            .map((one) => one.ref)
            .sort((a, b) => a - b);
        assert.equal(new Set(refs()).size, 3);
        assert.deepEqual(refs(), refs());
      }));

    test("only the staleness marker is stale, not other NaNs", () => {
      assert.ok(isStale(STALE_NAN) && !isStale(Number.NaN) && !isStale(0));
    });
  });
}
