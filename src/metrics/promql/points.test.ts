import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { pointsAsJson } from "./points.ts";

const written = (values: readonly number[], times: readonly string[]): string =>
  Buffer.from(pointsAsJson(Float64Array.from(values), times)).toString("latin1");

function text(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

const expected = (values: readonly number[], times: readonly string[]): string =>
  values.map((value, i) => `${times[i]}"${text(value)}"]`).join(",");

const timesFor = (values: readonly number[], start = 1_700_000_040): string[] =>
  values.map((_, i) => `[${start + i * 15},`);

const PLAIN = [0, -0, 1, -1, 0.1, 0.3, 1 / 3, 4.35, 100, 1200, 123_456, Number.NaN, Infinity, -Infinity];
/** Where JavaScript begins and ends to write exponents, and where whole numbers end. */
const EDGES = [1e20, 1e21, 1e22, 1.2345678901234568e20, 1e-6, 1e-7, 1.5e-7, 9.5367431640625e-7, 2 ** 53, 2 ** 53 + 2];
/** Denormal numbers, the largest one, and powers of two, whose neighbours are not equally far. */
const FAR = [5e-324, 1.5e-323, 2.2250738585072014e-308, Number.MAX_VALUE, 2 ** -1022, 2 ** 1023, 2 ** 60, 2 ** -60];
const ODD = [...PLAIN, ...EDGES, ...FAR];

suite("points as JSON", () => {
  test("edge-case numbers are written correctly", () => {
    const times = timesFor(ODD);
    assert.equal(written(ODD, times), expected(ODD, times));
  });

  test("any number is written as JavaScript writes it", () => {
    const any = fc.oneof(
      fc.double(),
      fc.integer(),
      fc.maxSafeInteger(),
      fc.integer({ min: -1074, max: 1023 }).map((power) => 2 ** power),
      fc.tuple(fc.integer(), fc.integer({ min: 1, max: 1000 })).map(([a, b]) => a / b),
    );
    fc.assert(
      fc.property(fc.array(any, { maxLength: 200 }), (values) => {
        const times = timesFor(values);
        assert.equal(written(values, times), expected(values, times));
      }),
      { numRuns: 500 },
    );
  });

  test("results of any size are written one after the other, with new and repeated timestamps", () => {
    for (const size of [0, 1, 3, 50_000, 2, 11_000]) {
      const values = Array.from({ length: size }, (_, i) => i / 7);
      for (const times of [timesFor(values), timesFor(values, 5)]) {
        assert.equal(written(values, times), expected(values, times));
        assert.equal(written(values, times), expected(values, times));
      }
    }
  });
});
