import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import type { Matcher } from "../source.ts";
import { federate } from "./federate.ts";
import { HandClock, HOUR, labelsOf, NOON, openPartition, put } from "./fixtures.ts";
import { MetadataQueries } from "./index/metadata-queries.ts";
import type { Scope } from "./index/scope.ts";
import { statusOf } from "./index/status.ts";

const is = (name: string, value: string): Matcher => ({ name, op: "=", value });

/** `old` in a block of this morning, `new` in the head. */
async function open(t: TestContext) {
  const db = openPartition(tempDir(), new HandClock());
  t.after(() => db.close());
  put(db, [[labelsOf({ __name__: "old", app: "web", gone: "yes" }), NOON - 8 * HOUR, 1]]);
  await db.compact();
  put(db, [
    [labelsOf({ __name__: "new", app: "web" }), NOON, 2],
    [labelsOf({ __name__: "new", app: 'd"b\\' }), NOON, 3],
  ]);
  return { db, queries: new MetadataQueries(db) };
}

const EVER = { start_ms: 0, end_ms: NOON + HOUR };
const NOW = { start_ms: NOON - HOUR, end_ms: NOON };

suite("label queries", () => {
  test("label queries respect time range, selector and limit", async (t) => {
    const { queries } = await open(t);
    const names = (scope: Scope): unknown => JSON.parse(queries.labelNames(scope));
    const values = (name: string, scope: Scope): unknown => JSON.parse(queries.labelValues(name, scope));
    assert.deepEqual(names(EVER), ["__name__", "app", "gone"]);
    assert.deepEqual(names(NOW), ["__name__", "app"]);
    assert.deepEqual(names({ ...EVER, selector: [[is("__name__", "new")]] }), ["__name__", "app"]);
    assert.deepEqual(names({ ...EVER, limit: 2 }), ["__name__", "app"]);
    assert.deepEqual(values("__name__", EVER), ["new", "old"]);
    assert.deepEqual(values("__name__", NOW), ["new"]);
    assert.deepEqual(values("app", { ...EVER, selector: [[is("gone", "yes")]] }), ["web"]);
    assert.deepEqual(values("nowhere", EVER), []);
    const series = (scope: Scope): unknown => JSON.parse(Buffer.from(queries.series(scope)).toString());
    assert.deepEqual(series({ ...NOW, selector: [[is("app", 'd"b\\')]] }), [{ __name__: "new", app: 'd"b\\' }]);
    assert.deepEqual(series({ ...NOW, selector: [[is("__name__", "old")]] }), []);
    assert.equal((series({ ...EVER, limit: 1 }) as unknown[]).length, 1);
  });

  test("the status counts series by name, label and pair, of all or of matching series", async (t) => {
    const { db } = await open(t);
    const all = statusOf(db, { top: 2 });
    assert.equal(all.totalSeries, 3);
    assert.equal(all.totalLabelValuePairs, 7);
    assert.deepEqual(all.seriesCountByLabelValuePair[0], { name: "__name__=new", value: 2 });
    assert.equal(all.seriesCountByLabelValuePair.length, 2);
    const some = statusOf(db, { selector: [[is("__name__", "old")]], focus_label: "gone" });
    assert.equal(some.totalSeries, 1);
    assert.deepEqual(some.seriesCountByFocusLabelValue, [{ name: "yes", value: 1 }]);
    assert.deepEqual(some.seriesCountByMetricName, [{ name: "old", value: 1 }]);
  });

  test("federation returns the newest samples, escaped, and no old ones", async (t) => {
    const { db } = await open(t);
    assert.equal(
      federate(db.source, [[]], NOON, 300_000),
      `# TYPE new untyped\nnew{app="d\\"b\\\\"} 3 ${NOON}\nnew{app="web"} 2 ${NOON}\n`,
    );
  });
});
