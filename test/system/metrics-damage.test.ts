/** T2: bad bytes cost only themselves. And a full disk, which costs nothing at all. */
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { contents, HandClock, HOUR, labelsOf, NOON, openPartition, put, type Sample } from "#metrics/tsdb/fixtures.ts";
import { random, runs, seed, tempDir } from "../support.ts";
import { Ext4 } from "./ext4.ts";
import { fill } from "./fill.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";

const FLIPS = runs(50, 600, 2000);
/** Enough for several frames in a block. */
const SERIES = 50;

type Contents = Map<string, [number, string][]>;
/** What was written, by series and time: looked up for every sample of every run. */
type Written = Map<string, Map<number, string>>;

const series = Array.from({ length: SERIES }, (_, k) => labelsOf({ __name__: "m", app: `a${k % 5}`, k: String(k) }));

function roundTime(n: number): number {
  return NOON - 5 * HOUR + n * 60_000;
}

/** A round: one sample of each series. Values that do not compress to nothing. */
function round(n: number): Sample[] {
  return series.map((labels, k) => [labels, roundTime(n), Math.round(Math.sin(n * k + k) * 1e6) / 100]);
}

/** Two blocks of 60 and 120 rounds, and a log with 120 more in several segments. */
async function writeSome(dir: string): Promise<Written> {
  const clock = new HandClock();
  let db = openPartition(dir, clock);
  for (let n = 0; n < 250; n++) put(db, round(n));
  await db.maintain();
  assert.equal(db.blocks.length, 2);
  await db.close();
  db = openPartition(dir, clock);
  for (let n = 250; n < 300; n++) put(db, round(n));
  const all = contents(db.source);
  await db.close();
  return new Map([...all].map(([labels, rows]) => [labels, new Map(rows)]));
}

interface Damage {
  what: string;
  kind: "wal" | "block";
  /** The most samples that may be missing. */
  most: number;
  /** Cut off, as a crash leaves a log; not changed. */
  cut: boolean;
}

/** Flips a bit somewhere, or cuts a file somewhere. */
function damage(dir: string, roll: () => number): Damage {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const file = files[Math.floor(roll() * files.length)] ?? "";
  const bytes = readFileSync(file);
  const at = Math.floor(roll() * bytes.length);
  const most = file.endsWith(".wal") ? recordsFrom(bytes, at) * SERIES : 120 * SERIES;
  const cut = roll() < 0.2;
  if (!cut) bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(roll() * 8));
  writeFileSync(file, cut ? bytes.subarray(0, at) : bytes);
  const what = `${cut ? "cut" : "flip"} at ${at} of ${file.slice(dir.length)}`;
  return { what, kind: file.endsWith(".wal") ? "wal" : "block", most, cut };
}

/** Bytes before the first frame of a log segment, and before the record of each. */
const MAGIC = 8;
const FRAME = 12;

/** Records of a log segment that do not lie completely before `at`. */
function recordsFrom(bytes: Buffer, at: number): number {
  let records = 0;
  for (let start = MAGIC; start + FRAME <= bytes.length; start += FRAME + bytes.readUInt32LE(start)) {
    if (start + FRAME + bytes.readUInt32LE(start) > at) records++;
  }
  return records;
}

/** Samples that are there; every one of them must be what was written. */
function countRight(left: Contents, all: Written, what: string): number {
  let right = 0;
  for (const [labels, rows] of left) {
    const expected = all.get(labels);
    for (const [time, bits] of rows) {
      if (bits !== expected?.get(time)) assert.fail(`${what}: ${labels} at ${time} is not what was written`);
      right++;
    }
  }
  return right;
}

/** Whether the samples are the same in the same order, compared quickly: there are tens of thousands. */
const textOf = (left: Contents): string => JSON.stringify([...left]);

/** Opens a damaged folder, twice, and looks; answers how much is missing, 1 for everything. */
async function inspect(dir: string, all: Written, { what, kind, most, cut }: Damage): Promise<number> {
  const total = [...all.values()].reduce((sum, { size }) => sum + size, 0);
  const db = openPartition(dir, new HandClock());
  const left = contents(db.source);
  await db.maintain();
  assert.ok(textOf(contents(db.source)) === textOf(left), `${what}: mending changed what is readable`);
  const missing = total - countRight(left, all, what);
  assert.ok(missing <= most, `${what}: ${missing} samples are missing, at most ${most} may`);
  // A log cut short is what a crash leaves. Anything else that lost something is kept as it was found.
  if (missing > 0 && !(kind === "wal" && cut)) {
    assert.equal(readdirSync(join(dir, "quarantine")).length, 1, `${what}: nothing in quarantine`);
  }
  put(db, round(300));
  await db.close();
  const again = openPartition(dir, new HandClock());
  // More may be there than before: without the bad block, the log is believed again.
  const right = countRight(contents(again.source, undefined, -8.64e15, roundTime(299)), all, what);
  assert.ok(right >= total - missing, `${what}: ${right} after reopening`);
  assert.equal(contents(again.source, undefined, roundTime(300)).size, SERIES, `${what}: it goes on`);
  await again.close();
  return missing / total;
}

if (await ownMounts(import.meta.filename)) {
  suite("metrics on a bad disk", () => {
    test(`${FLIPS} damaged or truncated files: other data are correct, and the bad file is kept (T2)`, {
      timeout: 900_000,
    }, async (t) => {
      const roll = random(seed(t));
      const master = tempDir();
      const all = await writeSome(master);
      const work = join(tempDir(), "work");
      const worst = { wal: 0, block: 0 };
      for (let run = 0; run < FLIPS; run++) {
        rmSync(work, { recursive: true, force: true });
        cpSync(master, work, { recursive: true });
        const damaged = damage(work, roll);
        worst[damaged.kind] = Math.max(worst[damaged.kind], await inspect(work, all, damaged));
      }
      t.diagnostic(`worst loss: log ${(worst.wal * 100).toFixed(1)} %, block ${(worst.block * 100).toFixed(1)} %`);
    });

    test("a full disk refuses writes, serves reads, and recovers without a restart", {
      skip: mountsMissing(),
    }, async (t) => {
      const disk = new Ext4(t, 12);
      const dir = join(disk.path, "org");
      const clock = new HandClock();
      let db = openPartition(dir, clock);
      let n = 0;
      for (; n < 20; n++) put(db, round(n));
      const empty = fill(disk.path);
      let refused = 0;
      for (let tries = 0; tries < 2000 && refused < 50; tries++) {
        try {
          put(db, round(n));
          n++;
        } catch (thrown) {
          assert.ok(
            thrown instanceof Error && thrown.name === "StorageError" && "full" in thrown && thrown.full,
            String(thrown),
          );
          refused++;
        }
      }
      assert.equal(refused, 50);
      const held = contents(db.source);
      assert.equal([...held.values()][0]?.length, n);
      await assert.rejects(db.compact(), { name: "StorageError", full: true });
      assert.deepEqual(contents(db.source), held, "a block that could not be written changes nothing");

      empty();
      for (let more = 0; more < 100; more++) put(db, round(n++));
      await db.flush();
      await db.compact();
      assert.equal([...contents(db.source).values()][0]?.length, n);
      await db.close();
      db = openPartition(dir, clock);
      const rows = contents(db.source);
      assert.equal(rows.size, SERIES);
      for (const row of rows.values()) assert.equal(row.length, n);
      await db.close();
    });

    test("a failing disk makes flush fail, nothing is acknowledged after it, and reads go on", {
      skip: mountsMissing(),
    }, async (t) => {
      const disk = new Ext4(t, 24);
      const db = openPartition(join(disk.path, "org"), new HandClock());
      put(db, round(0));
      await db.flush();
      put(db, round(1));
      await (await disk.switch()).cut();
      await assert.rejects(db.flush(), { name: "StorageError", full: false });
      assert.equal(db.broken, true);
      assert.throws(() => put(db, round(2)), { name: "StorageError", full: false });
      await assert.rejects(db.flush(), { name: "StorageError" }, "a later sync proves nothing");
      assert.equal([...contents(db.source).values()][0]?.length, 2);
      await db.close();
      disk.unmount();
      disk.mount();
      const again = openPartition(join(disk.path, "org"), new HandClock());
      assert.ok(([...contents(again.source).values()][0]?.length ?? 0) >= 1, "what was flushed is there");
      await again.close();
    });
  });
}
