import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { random, seed, tempDir } from "../../../test/support.ts";
import { isStale, type Labels, STALE_NAN } from "../source.ts";
import { bitsOf, contents, HandClock, HOUR, labelsOf, NOON, openPartition, put, type Sample } from "./fixtures.ts";

const up = (instance: string, app = "web"): Labels => labelsOf({ __name__: "up", app, instance });

/** `count` samples 15 s apart. */
function line(labels: Labels, start: number, count: number, value: (i: number) => number = (i) => i): Sample[] {
  return Array.from({ length: count }, (_, i) => [labels, start + i * 15_000, value(i)]);
}

function expected(samples: readonly Sample[]): Map<string, [number, string][]> {
  const series = new Map<string, Map<number, string>>();
  for (const [labels, time, value] of samples) {
    const key = labels.join(",");
    if (!series.has(key)) series.set(key, new Map());
    series.get(key)?.set(time, bitsOf(value));
  }
  return new Map(
    [...series].map(([key, rows]) => [key, [...rows].sort(([a], [b]) => a - b)] as [string, [number, string][]]),
  );
}

const sorted = <T>(map: Map<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

suite("TSDB partition", () => {
  test("appended samples are read from the head, after a restart, and from blocks", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    const samples = [
      ...line(up("a"), NOON - 5 * HOUR, 1200),
      ...line(up("b"), NOON - 5 * HOUR, 1200, (i) => (i === 700 ? STALE_NAN : i / 8)),
    ];
    let db = openPartition(dir, clock);
    for (const sample of samples) assert.equal(put(db, [sample]), 1);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(samples)));
    await db.close();

    db = openPartition(dir, clock);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(samples)));
    await db.compact();
    assert.equal(db.head.windows.length, 0);
    assert.equal(db.blocks.length, 1);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(samples)));
    await db.close();

    db = openPartition(dir, clock);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(samples)));
    await db.close();
  });

  test("a WAL segment is closed by its samples, however many series it names", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock, { wal_segment_bytes: 8192 });
    const segments = (): number => readdirSync(join(dir, "wal")).length;
    const round = (n: number): Sample[] =>
      Array.from({ length: 300 }, (_, i) => [up(`${"long".repeat(40)}-${i}`), NOON - HOUR + n * 15_000, n]);
    const samples: Sample[] = [];
    const write = (n: number): void => {
      for (const sample of round(n)) samples.push(sample);
      assert.equal(put(db, round(n)), 300);
    };
    for (let n = 0; n < 4; n++) write(n);
    assert.ok(db.bytes.wal > 300 * 160, "the names alone are more than a segment has");
    assert.equal(segments(), 1);
    for (let n = 4; segments() === 1; n++) {
      assert.ok(n < 100, "it is closed in the end");
      write(n);
    }
    await db.close();
    db = openPartition(dir, clock);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(samples)));
    await db.close();
  });

  test("late and repeated samples are sorted by time, and the last write wins", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock);
    const at = NOON - HOUR;
    const first: Sample[] = [...line(up("a"), at, 200)];
    const late: Sample[] = [
      [up("a"), at + 7_000, -1], // between two samples
      [up("a"), at + 15_000, -2], // again, in a sealed chunk
      [up("a"), at + 199 * 15_000, -3], // again, the newest
      [up("a"), at - 3 * HOUR, -4], // another window
    ];
    put(db, first);
    await db.compact();
    for (const sample of late) assert.equal(put(db, [sample]), 1);
    const all = expected([...first, ...late]);
    assert.deepEqual(contents(db.source), all);
    await db.close();
    db = openPartition(dir, clock);
    assert.deepEqual(contents(db.source), all);
    await db.compact();
    assert.deepEqual(contents(db.source), all);
    await db.close();
  });

  test("a partition agrees with a model under random writes, freezes, compactions and restarts", async (t) => {
    const roll = random(seed(t));
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock);
    const written: Sample[] = [];
    const names = ["a", "b", "c", "d"].map((name) => up(name));
    for (let step = 0; step < 300; step++) {
      const samples = Array.from({ length: 1 + Math.floor(roll() * 40) }, (): Sample => {
        const labels = names[Math.floor(roll() * names.length)] ?? [];
        const time =
          roll() < 0.8 ? clock.now() - Math.floor(roll() * 30) * 1000 : clock.now() - Math.floor(roll() * 20 * HOUR);
        return [labels, time, roll() < 0.05 ? STALE_NAN : Math.round(roll() * 1000) / 10];
      });
      assert.equal(put(db, samples), samples.length);
      written.push(...samples);
      clock.advance(Math.floor(roll() * 120_000));
      const dice = roll();
      if (dice < 0.04) await db.compact();
      else if (dice < 0.1) await db.maintain();
      else if (dice < 0.14) {
        await db.close();
        db = openPartition(dir, clock);
      }
      if (step % 25 === 0) assert.deepEqual(sorted(contents(db.source)), sorted(expected(written)));
    }
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(written)));
    const from = NOON - HOUR;
    const part = written.filter(([, time]) => time >= from && time <= from + HOUR);
    assert.deepEqual(sorted(contents(db.source, [], from, from + HOUR)), sorted(expected(part)));
    await db.close();
  });

  test("a batch outside the current window keeps its WAL until that window is a block", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock);
    const written: Sample[] = [];
    const write = (...times: number[]): void => {
      const samples = times.map((time): Sample => [up("a"), time, times.length]);
      written.push(...samples);
      assert.equal(put(db, samples), samples.length);
    };
    const at = async (minute: number, ...times: number[]): Promise<void> => {
      clock.advance(minute * 60_000 - (clock.wall - NOON));
      if (times.length > 0) write(...times);
      else await db.maintain();
    };
    // Old windows fall idle one after the other and become blocks, while the one at noon goes on; each time the log is cut.
    await at(0, NOON, NOON - 4 * HOUR);
    await at(10, NOON - 8 * HOUR);
    await at(50, NOON + 1000);
    await at(61);
    await at(62, NOON + 2000, NOON - 12 * HOUR);
    await at(71);
    await at(100, NOON + 3000);
    await at(125);
    assert.equal(db.head.windows.length, 1);
    await db.close();
    db = openPartition(dir, clock);
    assert.deepEqual(sorted(contents(db.source)), sorted(expected(written)));
    await db.close();
  });

  test("the newest sample is that of the requested window, in the head, late or in a block", async () => {
    const db = openPartition(tempDir(), new HandClock());
    put(db, line(up("a"), NOON - HOUR, 100));
    const [series] = db.source.select({ selector: [[]], start_ms: NOON - 2 * HOUR, end_ms: NOON });
    const last = NOON - HOUR + 99 * 15_000;
    assert.deepEqual(series?.newest(last - 1, last), { timestamp: last, value: 99 });
    assert.equal(series?.newest(last, last + 1), undefined);
    assert.deepEqual(series?.newest(last - 60_000, last - 1), { timestamp: last - 15_000, value: 98 });
    await db.compact();
    put(db, [[up("a"), NOON - 90 * 60_000, -7]]);
    const [again] = db.source.select({ selector: [[]], start_ms: NOON - 2 * HOUR, end_ms: NOON });
    assert.deepEqual(again?.newest(0, NOON), { timestamp: last, value: 99 });
    assert.deepEqual(again?.newest(0, NOON - HOUR - 1), { timestamp: NOON - 90 * 60_000, value: -7 });
    await db.close();
  });

  test("a staleness marker is recognized on the optimized path, too", async () => {
    const db = openPartition(tempDir(), new HandClock());
    put(db, [[up("a"), NOON - 1000, STALE_NAN]]);
    let stale = 0;
    for (let i = 0; i < 20_000; i++) {
      for (const series of db.source.select({ selector: [[]], start_ms: NOON - 2000, end_ms: NOON })) {
        if (isStale(series.newest(NOON - 2000, NOON)?.value ?? 0)) stale++;
      }
    }
    assert.equal(stale, 20_000);
    await db.close();
  });

  test("matchers treat absent labels as empty, conditions are ANDed, alternatives return a series once", async () => {
    const db = openPartition(tempDir(), new HandClock());
    put(db, [
      [labelsOf({ __name__: "up", app: "web", zone: "a" }), NOON, 1],
      [labelsOf({ __name__: "up", app: "db" }), NOON, 2],
      [labelsOf({ __name__: "down", app: "web" }), NOON, 3],
    ]);
    const values = (...selector: Parameters<typeof contents>[1][]): string[] =>
      [...db.source.select({ selector: selector.map((s) => s ?? []), start_ms: NOON, end_ms: NOON })]
        .map((series) => String(series.newest(NOON - 1, NOON)?.value))
        .sort();
    const cases: [Parameters<typeof contents>[1][], string[]][] = [
      [[[{ name: "__name__", op: "=", value: "up" }]], ["1", "2"]],
      [[[{ name: "zone", op: "=", value: "" }]], ["2", "3"]],
      [[[{ name: "zone", op: "!=", value: "" }]], ["1"]],
      [[[{ name: "zone", op: "!=", value: "a" }]], ["2", "3"]],
      [[[{ name: "zone", op: "=~", value: "a|" }]], ["1", "2", "3"]],
      [[[{ name: "zone", op: "=~", value: ".+" }]], ["1"]],
      [[[{ name: "zone", op: "!~", value: ".+" }]], ["2", "3"]],
      [
        [
          [
            { name: "app", op: "=~", value: "w.b|x" },
            { name: "__name__", op: "!~", value: "down" },
          ],
        ],
        ["1"],
      ],
      [[[{ name: "nowhere", op: "=", value: "x" }]], []],
      [[[{ name: "nowhere", op: "!=", value: "x" }]], ["1", "2", "3"]],
      [
        [[{ name: "app", op: "=", value: "web" }], [{ name: "__name__", op: "=", value: "up" }]],
        ["1", "2", "3"],
      ],
    ];
    for (const [selector, found] of cases) assert.deepEqual(values(...selector), found, JSON.stringify(selector));
    await db.close();
  });
});
