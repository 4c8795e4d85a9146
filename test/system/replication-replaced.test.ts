/** Files that are put in place of a database, while nodes run and while they do not: the new file is the truth, everywhere. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { runs, until } from "../support.ts";
import { addNote, appsMissing, notes, PythonApp, sqlite } from "./replication-apps.ts";
import { fileWith, isState, junkFile, notesOnBoth } from "./replication-notes.ts";

/** The notes of every copy that a node has put aside. */
function aside(dir: string): number[] {
  const folder = join(dir, ".replication", "aside");
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(".db"));
  return files.map((name) => notes(join(folder, name))?.rows ?? -1).toSorted((a, b) => a - b);
}

function pythonBackup(from: string, to: string): void {
  const program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))";
  execFileSync("python3", ["-c", program, from, to]);
}

const metric = async (port: number, name: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(new RegExp(`^hangar_db_${name} (.*)$`, "m").exec(text)?.[1]);
};

suite("a file in place of a database", { timeout: 300_000, skip: appsMissing() }, () => {
  test("renamed over it while an application has the old one open, of any page size: replicas get the new (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    const app = new PythonApp(pair.stage, path);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('in the old file')"), /^ok/);
    await pair.caughtUp("db", 21);
    // The old WAL stays behind, with frames of the old database.
    renameSync(fileWith(pair, 5), path);
    await pair.caughtUp("db", 5);
    assert.match(await app.run("PRAGMA busy_timeout = 100"), /^ok/);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('lost')"), /^error database is locked/);
    await app.end();
    addNote(path);
    await pair.caughtUp("db", 6);
    assert.deepEqual(aside(pair.dirs.primary), [21], "the old file is kept");
    for (const [page_size, rows] of [
      [8192, 7],
      [1024, 9],
    ] as const) {
      renameSync(fileWith(pair, rows, { page_size }), path);
      await pair.caughtUp("db", rows);
      addNote(path);
      await pair.caughtUp("db", rows + 1);
    }
    assert.ok(notes(pair.path("replica", "db"))?.whole);
    addNote(pair.path("primary", "other"));
    await pair.caughtUp("other", 2);
    assert.equal(await metric(pair.ports.replica, "disconnects_total"), 0, "no other database was disturbed");
  });

  test("put there while no node runs, beside the old WAL: that is removed, unless an application uses it (R7)", async (t) => {
    const { pair, path, primary } = await notesOnBoth(t);
    const app = new PythonApp(pair.stage, path);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('in the WAL')"), /^ok/);
    await pair.caughtUp("db", 21);
    await primary.end("SIGKILL");
    renameSync(fileWith(pair, 5), path);
    const again = await pair.start("primary");
    const said = await until("it is refused", isState(pair, "replaced"));
    assert.match(said.reason, /stop it/);
    assert.equal(notes(pair.path("replica", "db"))?.rows, 21, "the replica keeps what it has");
    await app.end();
    await pair.caughtUp("db", 5);
    addNote(path);
    await pair.caughtUp("db", 6);
    assert.ok(notes(path)?.whole);
    await again.end();
  });

  test("one that is no database is refused, and the replica keeps what it has (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    renameSync(junkFile(pair), path);
    const said = await until("it is refused", isState(pair, "damaged"));
    assert.match(said.reason, /not a database/);
    addNote(pair.path("primary", "other"));
    await pair.caughtUp("other", 2);
    assert.deepEqual(notes(pair.path("replica", "db")), { rows: 20, whole: true });
    renameSync(fileWith(pair, 3), path);
    await pair.caughtUp("db", 3);
  });

  test("a WAL that is deleted is healed: it is said who must be restarted, and nothing that was committed is lost (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    const app = new PythonApp(pair.stage, path);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('in the WAL')"), /^ok/);
    await pair.caughtUp("db", 21);
    rmSync(`${path}-wal`);
    const said = await until("it is said", async () => {
      const found = (await pair.info("primary"))?.states["db"];
      return found?.reason.includes("restart it") && found;
    });
    assert.match(said.reason, /write-ahead log was deleted, but process \d+ still has it open/);
    assert.deepEqual(notes(path), { rows: 21, whole: true }, "reading goes on");
    assert.match(await app.run("PRAGMA busy_timeout = 50"), /^ok/);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('nowhere')"), /^error database is locked/);
    await app.end();
    addNote(path);
    await pair.caughtUp("db", 22);
    assert.ok(notes(pair.path("replica", "db"))?.whole);
    assert.deepEqual((await pair.info("primary"))?.states, {});
  });

  // What programs of others write as a backup: equal to no transaction byte for byte.
  for (const [by, copy, known] of [
    ["sqlite3's .backup", (from: string, to: string) => sqlite(from, `.backup ${to}`), true],
    ["Python's backup", pythonBackup, true],
    ["VACUUM INTO", (from: string, to: string) => sqlite(from, `VACUUM INTO '${to}'`), false],
  ] as const) {
    test(`a copy by ${by}, restored while the node is stopped, reaches all nodes, and what it undoes is kept (R8)`, async (t) => {
      const { pair, path, primary } = await notesOnBoth(t);
      const backup = join(pair.stage.dir(), "backup");
      // Free pages, so that a copy without them has others.
      sqlite(path, "DELETE FROM notes WHERE n < 11");
      await pair.caughtUp("db", 10);
      copy(path, backup);
      for (let i = 0; i < 5; i++) addNote(path, `later ${i}`);
      await pair.caughtUp("db", 15);
      await primary.end();
      for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      renameSync(backup, path);
      await pair.start("primary");
      await pair.caughtUp("db", 10);
      assert.deepEqual(aside(pair.dirs.primary), known ? [15] : []);
      assert.deepEqual(aside(pair.dirs.replica), [15], "the replica keeps what it had");
      assert.equal(await metric(pair.ports.primary, "transactions_dropped_total"), known ? 5 : 0);
      addNote(path);
      await pair.caughtUp("db", 11);
      assert.ok(notes(pair.path("replica", "db"))?.whole);
    });
  }

  // While nodes run, and while the primary is stopped; by a copy over it and by a rename.
  for (const [when, how, skip] of [
    ["while the node is stopped", "cp", false],
    ["while the node is stopped", "mv", runs(1, 0) > 0 && "recover.test.ts does it at a push"],
    ["while the node runs", "mv", false],
  ] as const) {
    test(`an older copy restored with ${how} ${when} reaches all nodes, and the undone transactions are kept (R8)`, {
      skip,
    }, async (t) => {
      const { pair, path, ...started } = await notesOnBoth(t);
      let { primary } = started;
      // A copy of the file, as any backup program takes it, when nothing is in the WAL.
      await primary.end();
      sqlite(path, "PRAGMA wal_checkpoint(TRUNCATE)");
      const backup = join(pair.stage.dir(), "backup");
      execFileSync("cp", [path, backup]);
      primary = await pair.start("primary");
      for (let i = 0; i < 5; i++) addNote(path, `later ${i}`);
      await pair.caughtUp("db", 25);
      const stopped = when === "while the node is stopped";
      if (stopped) {
        await primary.end();
        for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      }
      execFileSync(how, [backup, path]);
      if (stopped) primary = await pair.start("primary");
      await pair.caughtUp("db", 20);
      assert.deepEqual(aside(pair.dirs.primary), [25]);
      assert.equal(await metric(pair.ports.primary, "transactions_dropped_total"), 5);
      addNote(path);
      await pair.caughtUp("db", 21);
      assert.ok(notes(pair.path("replica", "db"))?.whole);
    });
  }
});
