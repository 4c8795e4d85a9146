/** One call to the disk after the other fails: what was acknowledged is there, and nothing is half done. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { openSqlite } from "#stores/sqlite/database.ts";
import { openConnection } from "#stores/sqlite/open.ts";
import { runs, tempDir } from "../support.ts";
import { Child, ROOT } from "./child.ts";
import { type Acks, addCounter, contentOf, countUp, examine, noteAck, numberOf, SCHEMA } from "./store/load.ts";

const STEPS = 5;
/**
 * Every call in a proof. At a push the first, which is one of opening, and two of the first write: eight of the writes
 * before those are of the memory that connections share.
 */
const NTH = runs(0, 1) === 0 ? [1, 11, 14] : Array.from({ length: 10_000 }, (_, index) => index + 1);

/** Calls to the disk, and what they fail with; those that an architecture does not have are left out. */
const FAULTS: [calls: string, error: string][] = [
  ["openat", "EIO"],
  ["pwrite64,write", "EIO"],
  ["pwrite64,write", "ENOSPC"],
  ["fdatasync,fsync", "EIO"],
  ["ftruncate", "EIO"],
  ["?rename,?renameat,?renameat2", "EIO"],
];

function straceMissing(): string | undefined {
  const tried = spawnSync("strace", ["-o", "/dev/null", "-e", "trace=none", "true"]);
  return tried.status === 0
    ? undefined
    : "there is no strace, or it may not look at processes (apt-get install strace)";
}

interface Found {
  /** Whether there was such a call to fail. */
  hit: boolean;
  /** What cannot be, in words. */
  wrong: string[];
  refusals: number;
}

/** Lets the nth of these calls fail in the program's every thread, only for the files that it keeps. */
async function fail(t: TestContext, calls: string, error: string, nth: number, ...how: string[]): Promise<Found> {
  const dir = join(tempDir("hangar-faults"), "kept");
  mkdirSync(dir);
  const [database_file, file, log] = [join(dir, "hangar.db"), join(dir, "word"), join(dir, "../calls")];
  const before = await openSqlite(database_file);
  assert.ok((await before.write([...SCHEMA, addCounter(1), ...countUp(1, 1)])).ok);
  await before.close();
  writeFileSync(file, contentOf(0));

  const kept = [dir, file, `${file}.new`, ...["", "-wal", "-shm"].map((end) => `${database_file}${end}`)];
  const injected = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}:when=${nth}`];
  const program = [
    process.execPath,
    join(ROOT, "test/system/store/fault-writer.ts"),
    database_file,
    file,
    String(STEPS),
  ];
  const paths = kept.flatMap((path) => ["-P", path]);
  const child = new Child("strace", ["-f", "--seccomp-bpf", "-o", log, ...injected, ...paths, ...program, ...how]);
  t.after(() => child.kill());
  const { code } = await child.ended;
  const found = judge(child, database_file, file);
  if (code !== 0) found.wrong.push(`the program ended with ${code}: ${child.complaints}`);
  return { hit: readFileSync(log, "utf8").includes("(INJECTED)"), ...found };
}

function judge(child: Child, database_file: string, file: string): Omit<Found, "hit"> {
  const acks: Acks = new Map([[1, 1]]);
  let last = 0;
  for (const line of child.lines) {
    const [what, n] = line.split(" ");
    if (what === "counted") noteAck(acks, 1, Number(n));
    if (what === "kept") last = Number(n);
  }
  const db = openConnection(database_file);
  const { lost, wrong } = examine(db, acks);
  db.close();
  if (lost > 0) wrong.push(`${lost} acknowledged and not there`);
  wrong.push(...child.lines.filter((line) => line.startsWith("contradicted")));
  const found = numberOf(readFileSync(file, "utf8"));
  // One that was refused may be there all the same, but whole.
  if (found === undefined || found < last) wrong.push(`the file says ${found}, acknowledged was ${last}`);
  return { wrong, refusals: child.lines.filter((line) => line.startsWith("refused")).length };
}

suite("disk that fails one call", { skip: straceMissing() }, () => {
  for (const [calls, error] of FAULTS) {
    test(`${error} from ${calls.replaceAll("?", "")}: nothing is lost, torn or half done (S9)`, async (t) => {
      let [faults, refusals] = [0, 0];
      for (const nth of NTH) {
        const found = await fail(t, calls, error, nth);
        if (!found.hit) break;
        faults++;
        refusals += found.refusals;
        assert.deepEqual(found.wrong, [], `call ${nth}`);
      }
      assert.ok(faults > 0, "there was such a call");
      t.diagnostic(`${faults} calls failed, ${refusals} refusals, nothing lost, torn or half done`);
    });
  }

  test("control: an early acknowledgement or a write in place is found (S9)", async (t) => {
    const { hit, wrong } = await fail(t, "pwrite64,write", "EIO", 11, "careless");
    assert.ok(hit && wrong.length > 0, JSON.stringify(wrong));
  });
});
