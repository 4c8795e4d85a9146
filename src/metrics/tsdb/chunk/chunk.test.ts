import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { random, seed } from "../../../../test/support.ts";
import { type Columns, isStale } from "../../source.ts";
import { ByteWriter, DamagedBytes } from "../bytes.ts";
import { pushSample, settle } from "../columns.ts";
import { rows } from "../fixtures.ts";
import { CHUNK_SAMPLES, decodeChunk, encodeChunk, newColumns } from "./chunk.ts";

const BASE = 1_700_000_000_000;
const word = new Float64Array(1);
const halves = new Uint32Array(word.buffer);

/** A value as two 32-bit words: a plain array of numbers would quiet the NaN of a staleness marker. */
type Bits = { low: number; high: number };
const STALE: Bits = { low: 2, high: 0x7ff00000 };

function bits(value: number): Bits {
  word[0] = value;
  return { low: halves[0] ?? 0, high: halves[1] ?? 0 };
}

function columnsOf(samples: readonly { time: number; value: Bits | number }[]): Columns {
  const columns = newColumns(1);
  for (const { time, value } of samples) {
    const { low, high } = typeof value === "number" ? bits(value) : value;
    pushSample(columns, time, low, high);
  }
  return columns;
}

/** Samples 15 s apart. */
function regular(count: number, value: (i: number) => Bits | number): Columns {
  return columnsOf(Array.from({ length: count }, (_, i) => ({ time: BASE + i * 15_000, value: value(i) })));
}

/** Encodes, decodes, compares bit by bit; answers the size. */
function roundTrip(columns: Columns): number {
  const out = new ByteWriter(16);
  out.byte(99);
  encodeChunk(out, columns, 0, columns.length, BASE, 3);
  const back = newColumns(1);
  decodeChunk(out.view().slice(), 1, BASE, back);
  assert.deepEqual(rows(back), rows(columns));
  return out.at - 1;
}

const anyWord = fc.integer({ min: 0, max: 0xffffffff });
/** Doubles of every kind: any bits at all, decimals, counters, and the ones arithmetic would spoil. */
const anyValue: fc.Arbitrary<Bits | number> = fc.oneof(
  fc.record({ low: anyWord, high: anyWord }),
  fc.integer({ min: -1000, max: 1_000_000 }),
  fc.integer({ min: -99_999, max: 99_999 }).map((n) => n / 100),
  fc.constantFrom<Bits | number>(STALE, 0, -0, Infinity, -Infinity, Number.NaN, Number.MIN_VALUE, 2 ** 53, -1e-9),
);

suite("chunks", () => {
  test("every double is decoded bit by bit, at any timestamps", (t) => {
    const anySample = fc.record({ step: fc.nat({ max: 120_000 }), value: anyValue });
    fc.assert(
      fc.property(
        fc.array(anySample, { minLength: 1, maxLength: 200 }),
        fc.integer({ min: -1e12, max: 1e12 }),
        (samples, start) => {
          let time = BASE + start;
          const timed = samples.map(({ step, value }) => {
            time += step + 1;
            return { time, value };
          });
          roundTrip(columnsOf(timed));
        },
      ),
      { seed: seed(t), numRuns: 500 },
    );
  });

  test("series of typical shapes are decoded unchanged", (t) => {
    const roll = random(seed(t));
    let total = 0;
    const grow = (by: number): number => {
      total += by;
      return total;
    };
    const kinds: Record<string, (i: number) => Bits | number> = {
      counter: () => grow(Math.floor(roll() * 50)),
      "huge counter": () => grow(Math.floor(roll() * 2 ** 44)),
      float: () => grow(roll()),
      gauge: () => Math.round(roll() * 1e4) / 100,
      pages: () => Math.floor(roll() * 1e6) * 4096,
      tiny: () => roll() * 1e-300,
      "ends stale": (i) => (i > CHUNK_SAMPLES - 3 ? STALE : i),
      "mostly NaN": (i) => (i % 3 === 0 ? i : Number.NaN),
      "signed zero": (i) => (i % 2 === 0 ? 0 : -0),
    };
    for (const value of Object.values(kinds)) roundTrip(regular(CHUNK_SAMPLES, value));
  });

  test("a staleness marker survives encoding, and other NaNs do not become one", () => {
    const out = new ByteWriter();
    encodeChunk(
      out,
      regular(3, (i) => [1, STALE, Number.NaN][i] ?? 0),
      0,
      3,
      BASE,
    );
    const back = newColumns();
    decodeChunk(out.view(), 0, BASE, back);
    const stale = Array.from({ length: 3 }, (_, i) => isStale(back.values[i] ?? 0));
    assert.deepEqual(stale, [false, true, false]);
  });

  test("regular timestamps and constant values take almost no bytes", () => {
    const constant = roundTrip(regular(480, () => 1));
    assert.ok(constant < 24, `${constant} bytes`);
    const missed = Array.from({ length: 480 }, (_, i) => ({ time: BASE + (i + (i > 200 ? 1 : 0)) * 15_000, value: 1 }));
    const gap = roundTrip(columnsOf(missed));
    assert.ok(gap < 32, `${gap} bytes`);
    const pages = roundTrip(regular(480, (i) => 2 ** 30 + ((i * 7) % 60) * 4096));
    assert.ok(pages < 480 + 40, `${pages} bytes`);
  });

  test("damaged chunks are refused or decoded within bounds, and never hang", (t) => {
    const roll = random(seed(t));
    const samples = Array.from({ length: 100 }, (_, i) => ({
      time: BASE + i * 1000 + (i % 3),
      value: i % 7 ? i / 10 : -0,
    }));
    const out = new ByteWriter();
    encodeChunk(out, columnsOf(samples), 0, 100, BASE);
    for (let run = 0; run < 2000; run++) {
      const bytes = out.view().slice(0, 1 + Math.floor(roll() * out.at));
      bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      const into = newColumns();
      try {
        decodeChunk(bytes, 0, BASE, into);
        assert.ok(into.length <= CHUNK_SAMPLES);
      } catch (thrown) {
        assert.ok(thrown instanceof DamagedBytes, String(thrown));
      }
    }
  });
});

suite("columns", () => {
  test("settle() sorts by time and keeps the last write", () => {
    const columns = columnsOf([
      { time: 30, value: 1 },
      { time: 10, value: 2 },
      { time: 30, value: STALE },
      { time: 20, value: 3 },
      { time: 10, value: 4 },
    ]);
    settle(columns);
    assert.deepEqual([...columns.timestamps.subarray(0, columns.length)], [10, 20, 30]);
    assert.deepEqual([...columns.values.subarray(0, 2)], [4, 3]);
    assert.ok(isStale(columns.values[2] ?? 0));
  });
});
