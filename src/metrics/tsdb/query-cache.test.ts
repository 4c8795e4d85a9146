import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed, tempDir } from "../../../test/support.ts";
import type { Labels } from "../source.ts";
import { HandClock, HOUR, labelsOf, NOON, openPartition, put } from "./fixtures.ts";
import { MetadataQueries } from "./index/metadata-queries.ts";
import type { Scope } from "./index/scope.ts";
import { DAY_MS } from "./limits.ts";
import { QueryCache } from "./query-cache.ts";

const up = (app: string): Labels => labelsOf({ __name__: "up", app });
const MINUTE = 60_000;

suite("label query cache", () => {
  test("an entry is reused while the range stays in the same windows, and recomputed after a change", async (t) => {
    const db = openPartition(tempDir(), new HandClock(NOON + 2 * HOUR));
    t.after(() => db.close());
    const answers = new QueryCache<string>(db);
    let made = 0;
    const read = (scope: Partial<Scope> = {}): number => {
      answers.of("app", { start_ms: NOON, end_ms: NOON + HOUR, ...scope }, () => String(++made));
      return made;
    };
    put(db, [[up("web"), NOON, 1]]);
    assert.equal(read(), 1);
    assert.equal(read({ start_ms: NOON + 1, end_ms: NOON + MINUTE }), 1, "the same window");
    put(db, [[up("web"), NOON + 1, 2]]);
    assert.equal(read(), 1, "a sample more of a series that was there");
    assert.equal(read({ limit: 1 }), 2);
    assert.equal(read({ selector: [[{ name: "app", op: "=", value: "web" }]] }), 3);
    put(db, [[up("db"), NOON, 1]]);
    assert.equal(read(), 4, "a new series");
    put(db, [[up("db"), NOON - 3 * HOUR, 1]]);
    assert.equal(read(), 5, "a known series in another window");
    put(db, [[up("web"), NOON + 2 * HOUR, 1]]);
    const later = { start_ms: NOON + 2 * HOUR, end_ms: NOON + 3 * HOUR };
    assert.equal(read(later), 6);
    put(db, [[up("db"), NOON + 2 * HOUR, 1]]);
    assert.equal(read(later), 7, "a known series in a window that was there");
    await db.compact();
    assert.equal(read(), 8, "a block instead of the window");
  });

  test("entries are evicted when there are too many, and not cached when too long", () => {
    const db = openPartition(tempDir(), new HandClock());
    const answers = new QueryCache<string>(db);
    const made: string[] = [];
    const read = (label: string, length: number): void => {
      const answer = answers.of(label, { start_ms: 0, end_ms: 1 }, () => {
        made.push(label);
        return "x".repeat(length);
      });
      assert.equal(answer.length, length);
    };
    for (const label of ["a", "a", "long", "long", "a", "b", "a"]) read(label, label === "long" ? 2e6 : 6e5);
    assert.deepEqual(made, ["a", "long", "long", "a", "b", "a"]);
  });

  test("cached results equal those of a database without a cache", async (t) => {
    const roll = random(seed(t));
    const pick = (below: number): number => Math.floor(roll() * below);
    const clock = new HandClock();
    const db = openPartition(tempDir(), clock, { retention_ms: 2 * DAY_MS, steady_clock_ms: 0 });
    t.after(() => db.close());
    const remembering = new MetadataQueries(db);
    const happen: (() => unknown)[] = [
      () => put(db, [[up(`app-${pick(12)}`), clock.now() - pick(5) * MINUTE, 1]]),
      () => put(db, [[up(`app-${pick(12)}`), clock.now() - pick(20) * HOUR, 1]]),
      () => put(db, [[labelsOf({ __name__: "jobs", queue: `q-${pick(9)}` }), clock.now(), 1]]),
      () => clock.advance(pick(3 * HOUR)),
      () => (pick(6) === 0 ? db.compact() : db.maintain()),
    ];
    for (let round = 0; round < runs(300); round++) {
      await happen[pick(happen.length)]?.();
      // Few different ranges, so that most queries are repeated.
      const hours = [1, 6, 24, 60][pick(4)] ?? 0;
      const scope: Scope = {
        start_ms: clock.now() - hours * HOUR,
        end_ms: clock.now(),
        ...(pick(2) === 0 ? { selector: [[{ name: "__name__", op: "=" as const, value: "up" }]] } : {}),
      };
      const fresh = new MetadataQueries(db);
      assert.equal(remembering.labelNames(scope), fresh.labelNames(scope), `names in round ${round}`);
      assert.deepEqual(remembering.series(scope), fresh.series(scope), `series in round ${round}`);
      for (const name of ["app", "queue"]) {
        assert.equal(remembering.labelValues(name, scope), fresh.labelValues(name, scope), `${name} in round ${round}`);
      }
    }
  });
});
