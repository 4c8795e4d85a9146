import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import type { Labels } from "../source.ts";
import { StorageError } from "./files.ts";
import { contents, HandClock, HOUR, labelsOf, NOON, openPartition, put } from "./fixtures.ts";
import { statusOf } from "./index/status.ts";
import { Importer } from "./ingest/importer.ts";
import { importSeriesBatch, seriesBatch } from "./ingest/series-batch.ts";
import { DAY_MS, TSDB_LIMITS } from "./limits.ts";
import type { Partition } from "./partition.ts";
import { Tsdb } from "./tsdb.ts";

const up = (app: string, k = 0): Labels => labelsOf({ __name__: "up", app, k: String(k) });
const drops = (db: Partition): Record<string, number> => Object.fromEntries(db.admission.drops.byReason);
const count = (db: Partition): number => [...contents(db.source).values()].reduce((sum, rows) => sum + rows.length, 0);

suite("ingestion limits", () => {
  test("timestamps that are too old, too new, fractional or far out of order are refused", async () => {
    const db = openPartition(tempDir(), new HandClock());
    const { retention_ms, future_ms, out_of_order_ms } = TSDB_LIMITS;
    assert.equal(put(db, [[up("a"), NOON - retention_ms, 1]]), 1);
    assert.equal(put(db, [[up("a"), NOON - retention_ms - 1, 1]]), 0);
    assert.equal(put(db, [[up("a"), NOON + future_ms, 1]]), 1);
    assert.equal(put(db, [[up("a"), NOON + future_ms + 1, 1]]), 0);
    assert.equal(put(db, [[up("a"), NOON - out_of_order_ms, 1]]), 1);
    assert.equal(put(db, [[up("a"), NOON - out_of_order_ms - 1, 1]]), 0, "behind its newest and older than the window");
    assert.equal(put(db, [[up("b"), NOON - out_of_order_ms - 1, 1]]), 1, "old, but in order");
    assert.equal(put(db, [[up("b"), NOON + 0.5, 1]]), 0);
    assert.equal(put(db, [[up("b"), Number.NaN, 1]]), 0);
    assert.deepEqual(drops(db), { too_old: 1, too_new: 1, out_of_order: 1, bad_timestamp: 2 });
    await db.close();
  });

  test("an app over its series limit loses only new series, counted per app", async () => {
    const clock = new HandClock();
    const db = openPartition(tempDir(), clock, { series_per_app: 3 });
    for (let k = 0; k < 5; k++) put(db, [[up("big", k), clock.now(), 1]]);
    assert.equal(put(db, [[up("small"), clock.now(), 1]]), 1);
    assert.equal(put(db, [[up("big", 0), clock.now() + 1, 1]]), 1, "known series go on");
    assert.equal(db.table.alive, 4, "a refused series is not in the index");
    const { storage } = statusOf(db, {});
    assert.deepEqual(storage.dropped_samples, { series_per_app: 2 });
    assert.deepEqual(storage.dropped_samples_by_app, [{ name: "big", value: 2 }]);
    assert.deepEqual(storage.active_series_by_app, [
      { name: "big", value: 3 },
      { name: "small", value: 1 },
    ]);
    // A day later the old ones are written no more, and there is room again.
    clock.advance(DAY_MS);
    await db.maintain();
    assert.equal(db.head.activeSeries, 0);
    for (let k = 10; k < 13; k++) assert.equal(put(db, [[up("big", k), clock.now(), 1]]), 1);
    assert.equal(put(db, [[up("big", 0), clock.now(), 1]]), 0, "coming back needs room too");
    await db.close();
  });

  test("built-in series do not count for their app, also after a restart and when they come back", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    const limits = { series_per_app: 3 };
    const builtin = (db: Partition, machines: number): number => {
      const samples = Array.from({ length: machines }, (_, k) => ({
        labels: labelsOf({ __name__: "svc_up", app: "web", instance: String(k) }),
        timestamp: clock.now(),
        value: 1,
      }));
      return importSeriesBatch(new Importer(db), seriesBatch(samples)).samples;
    };
    const own = (db: Partition, from: number): number =>
      Array.from({ length: 5 }, (_, k) => put(db, [[up("web", from + k), clock.now(), 1]])).reduce((a, b) => a + b);
    let db = openPartition(dir, clock, limits);
    assert.equal(builtin(db, 50), 50, "as many as there are machines");
    assert.equal(own(db, 0), 3, "the app has room for its own as before");
    assert.equal(builtin(db, 60), 60, "and its own take none of theirs");
    await db.close();

    clock.advance(1000);
    db = openPartition(dir, clock, limits);
    assert.equal(builtin(db, 60), 60);
    assert.equal(own(db, 0), 3);
    clock.advance(DAY_MS);
    await db.maintain();
    assert.equal(builtin(db, 60), 60);
    assert.equal(own(db, 100), 3);
    const [active] = statusOf(db, {}).storage.active_series_by_app;
    assert.deepEqual(active, { name: "web", value: 63 }, "what is written is shown in all");
    await db.close();
  });

  test("an organization's series limit holds, and series without samples do not fill the index", async () => {
    const db = openPartition(tempDir(), new HandClock(), { series_per_org: 3, series_per_app: 2 });
    for (let k = 0; k < 9; k++) put(db, [[up("old", k), 0, 1]]);
    assert.equal(db.table.alive, 2, "series of refused samples count for their app");
    put(db, [
      [up("x"), NOON, 1],
      [up("y"), NOON, 1],
    ]);
    assert.deepEqual(drops(db), { too_old: 2, series_per_app: 7, series_per_org: 1 });
    await db.close();
  });
});

suite("blocks and retention", () => {
  test("two-hour windows become blocks, a day becomes one block, and expired days are deleted", async () => {
    const dir = tempDir();
    const clock = new HandClock(Date.UTC(2026, 0, 10));
    const db = openPartition(dir, clock, { retention_ms: 3 * DAY_MS });
    const spans: number[] = [];
    for (let hour = 0; hour < 24 * 6; hour++) {
      for (let minute = 0; minute < 60; minute += 10) {
        put(db, [[up("a"), clock.now(), hour]]);
        clock.advance(600_000);
      }
      await db.maintain();
      spans.push(Math.max(0, ...db.blocks.map((block) => block.end_ms - block.start_ms)));
    }
    assert.equal(Math.max(...spans), DAY_MS);
    assert.ok(db.blocks.length <= 3 + 1 + 12, `${db.blocks.length} blocks`);
    const oldest = Math.min(...db.blocks.map(({ end_ms }) => end_ms));
    assert.ok(oldest > clock.now() - 3 * DAY_MS, "older blocks are deleted");
    assert.ok(oldest <= clock.now() - 2 * DAY_MS, "younger ones are not");
    assert.equal(readdirSync(join(dir, "blocks")).length, db.blocks.length);
    assert.ok(db.bytes.wal < 20_000, `${db.bytes.wal} bytes of log`);
    const before = contents(db.source);
    await db.close();
    const again = openPartition(dir, clock);
    assert.deepEqual(contents(again.source), before);
    await again.close();
  });

  test("series of deleted blocks leave the index", async () => {
    const clock = new HandClock();
    const db = openPartition(tempDir(), clock, { retention_ms: 2 * DAY_MS });
    for (let k = 0; k < 100; k++) put(db, [[up("gone", k), clock.now(), 1]]);
    for (let day = 0; day < 5; day++) {
      put(db, [[up("stays"), clock.now(), 1]]);
      clock.advance(DAY_MS);
      await db.maintain();
    }
    assert.equal(db.table.alive, 1);
    assert.deepEqual([...(db.table.names.get("app")?.pairs.keys() ?? [])], ["stays"]);
    assert.equal(put(db, [[up("gone", 1), clock.now(), 5]]), 1, "and may come back");
    assert.equal(contents(db.source, [{ name: "app", op: "=", value: "gone" }]).size, 1);
    await db.close();
  });

  test("a clock that jumps ahead deletes nothing, and one that comes back loses nothing", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    let db = openPartition(dir, clock);
    for (let k = 0; k < 100; k++) put(db, [[up("a"), NOON - 3 * HOUR + k * 60_000, k]]);
    await db.compact();
    clock.wall += 365 * DAY_MS;
    await db.maintain();
    assert.equal(put(db, [[up("a"), clock.now(), -1]]), 1);
    clock.mono += TSDB_LIMITS.steady_clock_ms / 2;
    clock.wall += TSDB_LIMITS.steady_clock_ms / 2;
    await db.maintain();
    assert.equal(count(db), 101, "the clock has not been steady long enough to delete by it");
    clock.wall = NOON;
    await db.maintain();
    for (let k = 0; k < 500; k++) {
      assert.equal(put(db, [[up("a"), clock.now(), k]]), 1, "samples of the right time are taken again");
      clock.advance(60_000);
      if (k % 10 === 0) await db.maintain();
    }
    assert.equal(count(db), 601);
    assert.ok(db.blocks.length < 12, `${db.blocks.length} blocks`);
    await db.close();
    db = openPartition(dir, clock);
    assert.equal(count(db), 601);
    await db.close();
  });

  test("memory is bounded: many open windows, or a large one, become blocks early", async () => {
    const clock = new HandClock();
    const db = openPartition(tempDir(), clock, { open_windows: 4, head_bytes: 2_000_000 });
    for (let window = 0; window < 40; window++) {
      put(db, [[up("a"), NOON - 10 * DAY_MS + window * 2 * HOUR, window]]);
      await db.maintain();
    }
    assert.ok(db.head.windows.length <= 5, `${db.head.windows.length} windows`);
    assert.equal(count(db), 40);
    await db.close();
  });

  test("an error caused by a full disk is recognized through wrapping errors", () => {
    const full = new StorageError("no block", Object.assign(new Error("no space"), { code: "ENOSPC" }));
    assert.deepEqual(
      [full.full, new StorageError("no room", full).full, new StorageError("", "").full],
      [true, true, false],
    );
  });

  test("organizations are opened on demand, closed when idle, and removed when deleted", async () => {
    const dir = tempDir();
    const clock = new HandClock();
    const tsdb = new Tsdb(dir, clock);
    put((await tsdb.org("acme")).partition, [[up("a"), NOON, 1]]);
    put((await tsdb.org("../../evil")).partition, [[up("a"), NOON, 2]]);
    assert.equal(await tsdb.existing("other"), undefined);
    const first = await tsdb.org("acme");
    clock.advance(TSDB_LIMITS.org_idle_ms + 1);
    await tsdb.maintain();
    const second = await tsdb.org("acme");
    assert.notEqual(second, first);
    assert.equal(count(second.partition), 1);
    await tsdb.drop("acme");
    assert.equal(await tsdb.existing("acme"), undefined);
    assert.deepEqual(
      readdirSync(dir).map((name) => name.slice(0, 1)),
      ["~"],
    );
    await tsdb.close();
  });
});
