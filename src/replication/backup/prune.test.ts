import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { hex16 } from "../position.ts";
import { changesKey, listBackups, parseChanges, snapshotKey } from "./archive.ts";
import { superfluous, type TimedSnapshot } from "./prune.ts";

const snapshot = (txid: number, taken_ms: number, checksum = 1n): TimedSnapshot => {
  const position = { txid, checksum };
  return { key: snapshotKey("db", position), position, taken_ms };
};
const changes = (...ranges: [first: number, last: number][]) =>
  ranges.map(([first, last]) => {
    const parsed = parseChanges(changesKey("db", first, { txid: last, checksum: 1n }));
    assert.ok(parsed);
    return parsed;
  });

/** What goes, as `s<txid>` and `<first>-<last>`. */
function superfluousOf(snapshots: TimedSnapshot[], ranges: [number, number][], from_ms: number): string[] {
  const names = new Map([
    ...snapshots.map(({ key, position }) => [key, `s${position.txid}`] as const),
    ...changes(...ranges).map(({ key, first, position }) => [key, `${first}-${position.txid}`] as const),
  ]);
  return superfluous(snapshots, changes(...ranges), from_ms).map((key) => names.get(key) ?? key);
}

suite("backup pruning", () => {
  const three = [snapshot(10, 100), snapshot(20, 200), snapshot(30, 300)];
  const ranges: [number, number][] = [
    [11, 15],
    [16, 20],
    [21, 30],
    [31, 35],
  ];

  test("objects before the snapshot that the oldest restorable moment needs are pruned", () => {
    assert.deepEqual(superfluousOf(three, ranges, 250), ["s10", "11-15", "16-20"]);
    assert.deepEqual(superfluousOf(three, ranges, 200), ["s10", "11-15", "16-20"]);
    assert.deepEqual(superfluousOf(three, ranges, 199), []);
  });

  test("nothing is pruned while everything is recent, and never the newest snapshot", () => {
    assert.deepEqual(superfluousOf(three, ranges, 50), []);
    assert.deepEqual(superfluousOf([], ranges, 50), []);
    assert.deepEqual(superfluousOf(three, ranges, 1e9), ["s10", "s20", "11-15", "16-20", "21-30"]);
  });

  test("objects of a history that restarts at a lower transaction are retained", () => {
    // A primary was lost with transactions up to 40; the next one went on from 30.
    const forked = [snapshot(10, 100), snapshot(40, 200), snapshot(30, 300, 2n)];
    assert.deepEqual(
      superfluousOf(
        forked,
        [
          [11, 30],
          [31, 40],
          [31, 35],
        ],
        250,
      ),
      ["s10", "11-30"],
    );
  });
});

suite("backup listing", () => {
  test("a backup of 150,000 objects is listed", () => {
    const last = { txid: 9, checksum: 1n };
    const changes = Array<string>(150_000).fill(changesKey("db", 8, last));
    const keys = [snapshotKey("db", { txid: 7, checksum: 1n }), ...changes];
    assert.deepEqual(listBackups(keys), [{ name: "db", snapshots: 1, first: hex16(7), last: hex16(9) }]);
  });
});
