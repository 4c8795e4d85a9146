/**
 * A process that writes metrics until it is killed, for the crash tests:
 *
 *     node metrics-writer.ts DIR FIRST sync|nosync|timer
 *
 * Round n has one sample of each series at time n, worth n. It says `A n` when round n is appended and `F n`
 * when everything up to round n is on the disk; `nosync` says so without having made sure, and `timer` never
 * asks: the database syncs by itself every second.
 */

import { StorageError } from "../../src/metrics/tsdb/files.ts";
import { put } from "../../src/metrics/tsdb/fixtures.ts";
import { TSDB_LIMITS } from "../../src/metrics/tsdb/limits.ts";
import { Partition } from "../../src/metrics/tsdb/partition.ts";
import { roundTime, SERIES, seriesOf } from "./metrics-rounds.ts";

const [dir = "", first = "0", mode] = process.argv.slice(2);
let round = Number(first);
// The clock goes with the rounds, a minute each: every 120 rounds two hours are over and a block is made.
const clock = { now: () => roundTime(round), monotonic: () => performance.now(), sleep: async () => {} };
const limits = { ...TSDB_LIMITS, ...(mode === "nosync" ? { wal_sync_ms: 1e9 } : {}) };
const partition = new Partition(dir, clock, limits);

// A disk whose power was cut refuses everything: that is the end the tests want, not a fault.
process.on("uncaughtException", (error) => {
  if (!("syscall" in error) && !(error instanceof StorageError)) process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});

for (; ; round++) {
  const samples = Array.from({ length: SERIES }, (_, k) => [seriesOf(k), roundTime(round), round] as const);
  put(
    partition,
    samples.map(([labels, time, value]) => [labels, time, value]),
  );
  process.stdout.write(`A ${round}\n`);
  if (round % 7 === 0) {
    const upTo = round;
    if (mode === "sync") await partition.flush();
    process.stdout.write(`F ${upTo}\n`);
  }
  await new Promise((resolve) => setImmediate(resolve));
}
