import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { CUSTOM_SCHEMA, EMPTY_HISTOGRAM, type FloatHistogram } from "../histogram/histogram.ts";
import { HistogramTable } from "../histogram/table.ts";
import { isStaleAt } from "../nan-bits.ts";
import { instant } from "../promql/engine.ts";
import type { Labels, SampleSource } from "../source.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { newColumns } from "./chunk/chunk.ts";
import { putHistogramBytes, readHistogram } from "./chunk/histograms.ts";
import { contents, HandClock, HOUR, labelsOf, NOON, openPartition } from "./fixtures.ts";
import { GrowingBatch } from "./ingest/batch.ts";
import type { Partition } from "./partition.ts";

const latency = (app: string): Labels => labelsOf({ __name__: "latency", app });
const STALE = { low: 2, high: 0x7ff00000 };
type Value = number | "stale" | FloatHistogram;

/** A counter's histogram after `n` rounds; its buckets change every 50 of them. */
function counted(n: number): FloatHistogram {
  const spread = Math.floor(n / 50);
  const indexes = Array.from({ length: 4 + spread }, (_, i) => i - 2);
  const counts = indexes.map((_, i) => n * (i + 1));
  const count = counts.reduce((a, b) => a + b, n);
  return {
    ...EMPTY_HISTOGRAM,
    schema: 3,
    count,
    sum: n * 1.25,
    zero_threshold: 0.001,
    zero_count: n,
    positive: { indexes, counts },
    negative: { indexes: [-7, 5], counts: [0, n / 4] },
  };
}

const custom = (n: number): FloatHistogram => ({
  ...EMPTY_HISTOGRAM,
  schema: CUSTOM_SCHEMA,
  count: 3 * n,
  sum: n,
  bounds: [0.5, 1, 2.5],
  positive: { indexes: [0, 3], counts: [n, 2 * n] },
});

function put(db: Partition, samples: readonly [Labels, number, Value][]): number {
  const batch = new GrowingBatch();
  const word = new Float64Array(1);
  const halves = new Uint32Array(word.buffer);
  for (const [labels, time, value] of samples) {
    const ref = db.admission.series(labels);
    if (ref === undefined) continue;
    if (typeof value === "object") batch.pushHistogram(ref, time, value);
    else if (value === "stale") batch.push(ref, time, STALE.low, STALE.high);
    else {
      word[0] = value;
      batch.push(ref, time, halves[0] as number, halves[1] as number);
    }
  }
  return db.append(batch);
}

/** All samples of a series, without the hints that reading adds. */
function read(source: SampleSource, app: string): [number, Value][] {
  const columns = { ...newColumns(4), histograms: new HistogramTable() };
  const selector = [[{ name: "app", op: "=", value: app } as const]];
  for (const series of source.select({ selector, start_ms: -8.64e15, end_ms: 8.64e15 })) series.read(columns);
  return Array.from({ length: columns.length }, (_, i) => {
    const histogram = columns.histograms.at(columns.values, i);
    const number = isStaleAt(columns.values, i) ? "stale" : (columns.values[i] as number);
    return [columns.timestamps[i] as number, histogram ? { ...histogram, hint: "unknown" } : number];
  });
}

/** Counters, custom buckets, numbers between them and ends, over several windows. */
function mixedSamples(): [Labels, number, Value][] {
  const samples: [Labels, number, Value][] = [];
  for (let n = 0; n < 600; n++) {
    const time = NOON - 5 * HOUR + n * 30_000;
    samples.push([latency("a"), time, counted(n)]);
    samples.push([latency("b"), time, n % 100 === 99 ? "stale" : n % 10 === 0 ? n : custom(n)]);
    samples.push([latency("c"), time, n / 8]);
  }
  return samples;
}

const of = (samples: readonly [Labels, number, Value][], app: string): [number, Value][] =>
  samples.filter(([labels]) => labels.includes(app)).map(([, time, value]) => [time, value]);

suite("native histograms in the database", () => {
  test("they are read from the head, after a restart, from blocks and from merged ones", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    const samples = mixedSamples();
    const check = (db: Partition): void => {
      for (const app of ["a", "b", "c"]) assert.deepEqual(read(db.source, app), of(samples, app));
    };
    let db = openPartition(dir, clock);
    for (const sample of samples) assert.equal(put(db, [sample]), 1);
    check(db);
    await db.close();
    db = openPartition(dir, clock);
    check(db);
    await db.compact();
    assert.equal(db.blocks.length, 1);
    check(db);
    await db.close();
    db = openPartition(dir, clock);
    check(db);
    await db.close();
  });

  test("readers that know no histograms get the numbers alone", async () => {
    const db = openPartition(tempDir(), new HandClock());
    put(db, [
      [latency("a"), NOON - 3000, 1],
      [latency("a"), NOON - 2000, counted(1)],
      [latency("a"), NOON - 1000, 2],
      [latency("b"), NOON - 1000, counted(1)],
    ]);
    const [one] = contents(db.source).values();
    assert.deepEqual(
      one?.map(([time]) => time),
      [NOON - 3000, NOON - 1000],
    );
    assert.equal(contents(db.source).size, 1);
    await db.close();
  });

  test("late and repeated samples are in their place, and memory is given back", async () => {
    const db = openPartition(tempDir(), new HandClock());
    const at = (n: number): number => NOON - HOUR + n * 1000;
    put(db, [[latency("a"), at(0), counted(1)]]);
    put(db, [[latency("a"), at(9), counted(9)]]);
    put(db, [[latency("a"), at(9), counted(10)]]);
    put(db, [[latency("a"), at(5), custom(5)]]);
    const all = [
      [at(0), counted(1)],
      [at(5), custom(5)],
      [at(9), counted(10)],
    ];
    assert.deepEqual(read(db.source, "a"), all);
    const held = db.head.bytes;
    await db.compact();
    assert.deepEqual(read(db.source, "a"), all);
    assert.ok(db.head.bytes < held);
    await db.close();
  });

  test("strict queries compute with stored histograms", async () => {
    const db = openPartition(tempDir(), new HandClock());
    put(db, mixedSamples());
    const ask = (query: string, time_ms: number): unknown => {
      const { data } = instant({ query, source: db.source, time_ms, dialect: "promql" });
      return "series" in data ? data.series.map(({ values }) => values[0]) : undefined;
    };
    const end = NOON - 5 * HOUR + 40 * 30_000;
    assert.deepEqual(ask('histogram_sum(latency{app="a"})', end), [50]);
    assert.deepEqual(ask('histogram_sum(increase(latency{app="a"}[10m]))', end), [25]);
    assert.deepEqual(ask('resets(latency{app="a"}[10m])', end), [0]);
    await db.close();
  });

  test("a damaged block loses its frame and not the rest, and is quarantined", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock);
    put(db, mixedSamples());
    await db.compact();
    await db.close();
    const [block = ""] = readdirSync(join(dir, "blocks"));
    const bytes = readFileSync(join(dir, "blocks", block));
    bytes[40] = (bytes[40] ?? 0) ^ 255;
    writeFileSync(join(dir, "blocks", block), bytes);
    db = openPartition(dir, clock);
    const left = read(db.source, "a").length;
    assert.ok(left < 600);
    await db.maintain();
    assert.equal(readdirSync(join(dir, "quarantine")).filter((file) => file.includes("block")).length > 0, true);
    await db.close();
  });

  test("a histogram that is cut short anywhere is damage", () => {
    const out = new ByteWriter();
    putHistogramBytes(out, counted(120));
    const whole = out.view().slice();
    assert.deepEqual(readHistogram(new ByteReader(whole)), counted(120));
    for (let end = 0; end < whole.length; end++)
      assert.throws(() => readHistogram(new ByteReader(whole.subarray(0, end))), { name: "DamagedBytes" });
  });
});
