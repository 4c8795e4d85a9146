/** A backup taken under load is of one moment and can be put back; a bad one, or half a restore, is noticed. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { messageOf } from "#core/assert.ts";
import { readSettings } from "#core/settings.ts";
import { BackupError } from "#stores/backup.ts";
import { openPostgres } from "#stores/postgres/database.ts";
import { openConnection } from "#stores/sqlite/open.ts";
import { runRestore } from "../../src/maintenance.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { random, runs, seed, tempDir } from "../support.ts";
import { type Child, startProgram } from "./child.ts";
import { startDaemon } from "./daemon.ts";
import { APP_SECRETS, inconsistencies, SecretsLoad } from "./store/secrets-load.ts";

/** Restores that were killed halfway, of how many that were killed at all. */
const HALVES = { wanted: runs(2, 25, 400), tried: runs(60, 250, 4000) };
/** Writes until a backup takes so long to put back that kills fall into it. */
const LARGE = 1000;

type Rows = { name: string; version: number; secrets: number }[];

interface Result {
  code: number | null;
  said: string;
}

/** Runs `main.ts backup …` or `main.ts restore …` to its end. */
async function maintain(t: TestContext, ...args: string[]): Promise<Result> {
  const child = startProgram(t, "src/main.ts", args);
  const { code } = await child.ended;
  return { code, said: child.lines.join("\n") + child.complaints };
}

async function backUp(t: TestContext, source: string, file: string): Promise<void> {
  const { code, said } = await maintain(t, "backup", file, "--data-dir", source);
  assert.equal(code, 0, said);
}

/** A restore without a process of its own, of which this file would start too many. */
async function restore(file: string, dir: string, ...more: string[]): Promise<Result> {
  try {
    return { code: 0, said: await runRestore(readSettings(["--data-dir", dir, ...more], {}), file) };
  } catch (thrown) {
    if (thrown instanceof BackupError) return { code: 1, said: thrown.message };
    throw thrown;
  }
}

function rowsOf(dir: string): Rows {
  const db = openConnection(join(dir, "hangar.db"));
  try {
    const [verdict] = db.prepare("PRAGMA integrity_check").all();
    assert.deepEqual({ ...verdict }, { integrity_check: "ok" });
    return db.prepare(APP_SECRETS).all() as Rows;
  } finally {
    db.close();
  }
}

async function postgresRowsOf(url: string): Promise<Rows> {
  const database = await openPostgres(url);
  try {
    return await database.read<Rows[number]>(APP_SECRETS);
  } finally {
    await database.close();
  }
}

interface Copy {
  file: string;
  acked: ReadonlyMap<string, number>;
}

/** Copies of a database that others write to, with what was acknowledged before each was begun. */
async function copiesUnderLoad(
  t: TestContext,
  dir: string,
  count: number,
  copy: (source: string, file: string) => Promise<void>,
  /** Writes before each copy. */
  writes = 10,
): Promise<Copy[]> {
  const daemon = await startDaemon(t, join(dir, "data"));
  const load = new SecretsLoad(daemon, 8);
  const copies = [];
  for (let i = 0; i < count; i++) {
    await load.progress(writes);
    const acked = new Map(load.acked);
    const file = join(dir, `copy-${i}`);
    await copy(join(dir, "data"), file);
    copies.push({ file, acked });
  }
  await load.stop();
  daemon.child.signal("SIGTERM");
  await daemon.child.ended;
  return copies;
}

suite("backup", () => {
  let postgres: ReturnType<typeof startPostgres> | undefined;
  after(async () => await (await postgres)?.stop());

  /** Answers with the number of secrets in it. Every seventh goes into PostgreSQL: a backup belongs to neither. */
  async function restoreAndCheck({ file, acked }: Copy, i: number): Promise<number> {
    const target = join(file, `../restored-${i}`);
    const elsewhere = i % 7 === 6 && !postgresMissing();
    if (elsewhere) postgres ??= startPostgres();
    const url = elsewhere ? await (await postgres)?.database() : undefined;
    const { code, said } = await restore(file, target, ...(url ? ["--database-url", url] : []));
    assert.equal(code, 0, said);
    const rows = url ? await postgresRowsOf(url) : rowsOf(target);
    assert.deepEqual(inconsistencies(rows, acked), []);
    return rows.reduce((sum, row) => sum + row.secrets, 0);
  }

  test("every backup under load can be restored and is consistent (S8)", async (t) => {
    const dir = tempDir();
    const backups = await copiesUnderLoad(t, dir, runs(8, 30, 500), (source, file) => backUp(t, source, file));
    const counts: number[] = [];
    for (const [i, backup] of backups.entries()) counts.push(await restoreAndCheck(backup, i));
    const secrets = counts.at(-1) ?? 0;
    t.diagnostic(`${backups.length} backups, the last one with ${secrets} secrets`);
    // And what was restored is a platform: the same token opens it.
    const again = await startDaemon(t, join(dir, "restored-0"));
    assert.equal((await again.call("GET", "/v1/apps/client-0-0")).status, 200);
    assert.ok(secrets >= backups.length * 10, "the load wrote");
  });

  test("control: plain copies of the file are inconsistent, and that is detected (S8)", async (t) => {
    const dir = tempDir();
    // A start and a stop put the tables into the file itself, so that a copy of it looks fine.
    const first = await startDaemon(t, join(dir, "data"));
    first.child.signal("SIGTERM");
    await first.child.ended;
    const copies = await copiesUnderLoad(t, dir, 5, async (source, file) => {
      mkdirSync(file);
      copyFileSync(join(source, "hangar.db"), join(file, "hangar.db"));
    });
    const bad = copies.filter(({ file, acked }) => {
      try {
        const [wrong] = inconsistencies(rowsOf(file), acked);
        if (wrong) t.diagnostic(wrong);
        return wrong !== undefined;
      } catch (thrown) {
        t.diagnostic(messageOf(thrown));
        return true;
      }
    });
    assert.ok(bad.length > 0, "no plain copy was found bad, so the check above proves nothing");
  });

  test("a damaged backup is refused with a clear error and changes nothing (S5)", async (t) => {
    const dir = tempDir();
    const [backup] = await copiesUnderLoad(t, dir, 1, (source, file) => backUp(t, source, file));
    const whole = readFileSync(backup?.file ?? "");
    const lines = gunzipSync(whole).toString().split("\n");
    const flipped = Buffer.from(whole);
    flipped[whole.length >> 1] = (flipped[whole.length >> 1] ?? 0) ^ 0x10;
    const edited = lines.map((line) => line.replace('"network":"default"', '"network":"elsewhere"'));
    const damaged: [string, Buffer, RegExp][] = [
      ["cut in half", whole.subarray(0, whole.length >> 1), /cannot be read as a backup: unexpected end of file/],
      ["one bit flipped", flipped, /cannot be read as a backup|is damaged|not a backup/],
      ["a row changed", gzipSync(edited.join("\n")), /is damaged: its rows do not match their hash/],
      ["a row left out", gzipSync(lines.toSpliced(5, 1).join("\n")), /is damaged: its rows do not match their hash/],
      ["no end line", gzipSync(`${lines.slice(0, -2).join("\n")}\n`), /its end line is missing/],
      ["something else, packed", gzipSync("hello\n"), /not a backup of hangar/],
      ["something else", Buffer.from("hello\n"), /cannot be read as a backup: incorrect header check/],
      ["nothing", Buffer.alloc(0), /cannot be read as a backup|is empty/],
    ];
    const target = join(dir, "target");
    for (const [what, content, words] of damaged) {
      writeFileSync(join(dir, "bad"), content);
      const { code, said } = await restore(join(dir, "bad"), target);
      assert.equal(code, 1, what);
      assert.match(said, words, what);
      assert.ok(!existsSync(join(target, "master.key")), what);
    }
    const { code, said } = await maintain(t, "restore", join(dir, "bad"), "--data-dir", target);
    assert.deepEqual([code, said.split("\n").length], [1, 2], "one line, not a stack");
    assert.equal((await restore(backup?.file ?? "", target)).code, 0, "the whole one still goes in");
    const twice = await restore(backup?.file ?? "", target);
    assert.equal(twice.code, 1);
    assert.match(twice.said, /there is data here already/);
  });

  test("a restore that was killed is detected at the next start, and can be repeated", async (t) => {
    const dice = random(seed(t));
    const dir = tempDir();
    const [backup] = await copiesUnderLoad(t, dir, 1, (source, file) => backUp(t, source, file), LARGE);
    assert.ok(backup);
    const seen = { untouched: 0, half: 0, done: 0 };
    for (let i = 0; i < HALVES.tried && seen.half < HALVES.wanted; i++) {
      seen[await killARestore(t, backup, join(dir, `killed-${i}`), 100 * dice())]++;
    }
    t.diagnostic(`killed: ${JSON.stringify(seen)}`);
    assert.ok(seen.half > 0, "no kill fell into a restore");
  });
});

type State = "untouched" | "half" | "done";

/** Kills a restore, and answers with what it had done by then; everything must be right whatever that is. */
async function killARestore(t: TestContext, { file, acked }: Copy, target: string, after_ms: number): Promise<State> {
  const child = startProgram(t, "src/main.ts", ["restore", file, "--data-dir", target]);
  await untilWritten(join(target, "hangar.db-wal"), child);
  await delay(after_ms);
  await child.kill();
  const state = stateOf(target);
  if (state === "half") {
    const { code, said } = await maintain(t, "--data-dir", target, "--listen", "127.0.0.1:0");
    assert.equal(code, 1);
    assert.match(said, /a restore into this database was interrupted/);
  }
  const again = await restore(file, target);
  assert.equal(again.code, state === "done" ? 1 : 0, again.said);
  assert.deepEqual(inconsistencies(rowsOf(target), acked), []);
  assert.ok(existsSync(join(target, "master.key")), "a restore that is done has its key");
  rmSync(target, { recursive: true });
  return state;
}

/** The file is there, or was: on a busy box all of it may be over before this looks. */
async function untilWritten(path: string, by: Child): Promise<void> {
  let over = false;
  void by.ended.then(() => {
    over = true;
  });
  while (!over && !existsSync(path)) await delay(1);
}

/** What a killed restore has left behind. */
function stateOf(dir: string): State {
  const db = openConnection(join(dir, "hangar.db"));
  try {
    if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'meta'").all().length === 0) return "untouched";
    if (db.prepare("SELECT 1 FROM meta WHERE key = 'restoring'").all().length > 0) return "half";
    return db.prepare("SELECT 1 FROM orgs").all().length > 0 ? "done" : "untouched";
  } finally {
    db.close();
  }
}
