/**
 * A process that writes metrics until it is killed, for the crash tests:
 *
 *     node metrics-writer.ts DIR FIRST sync|nosync|timer
 *
 * Round n has one sample of each series at time n, worth n, and a native histogram made of n. It says `A n` when round n is appended and `F n`
 * when everything up to round n is on the disk; `nosync` says so without having made sure, and `timer` never
 * asks: the database syncs by itself every second.
 */
import { StorageError } from "#metrics/tsdb/files.ts";
import { openPartition, put, type Sample } from "#metrics/tsdb/fixtures.ts";
import { NATIVE, nativeOf, roundTime, SERIES, seriesOf } from "./metrics-rounds.ts";

const [dir = "", first = "0", mode] = process.argv.slice(2);
let round = Number(first);
// The clock goes with the rounds, a minute each: every 120 rounds two hours are over and a block is made.
const clock = { now: () => roundTime(round), monotonic: () => performance.now(), sleep: async () => {} };
const partition = openPartition(dir, clock, mode === "nosync" ? { wal_sync_ms: 1e9 } : {});

// A disk whose power was cut refuses everything: that is the end the tests want, not a fault.
process.on("uncaughtException", (error) => {
  if (!("syscall" in error) && !(error instanceof StorageError)) process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});

for (; ; round++) {
  const samples = Array.from({ length: SERIES }, (_, k): Sample => [seriesOf(k), roundTime(round), round]);
  put(partition, [...samples, [NATIVE, roundTime(round), nativeOf(round)]]);
  process.stdout.write(`A ${round}\n`);
  if (round % 7 === 0) {
    const upTo = round;
    if (mode === "sync") await partition.flush();
    process.stdout.write(`F ${upTo}\n`);
  }
  await new Promise((resolve) => setImmediate(resolve));
}
