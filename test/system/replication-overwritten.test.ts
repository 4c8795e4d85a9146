/** `cp` over the file of a database that is in use, by coreutils: that one database is looked at, the others go on. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { until } from "../support.ts";
import { addNote, appsMissing, notes, PythonApp } from "./replication-apps.ts";
import { fileWith, isState, junkFile, notesOnBoth } from "./replication-notes.ts";

const cp = (from: string, to: string): unknown => execFileSync("cp", [from, to]);

/** Rollback mode: all of it is in the file. */
const MADE = { journal_mode: "DELETE" } as const;

suite("database overwritten by cp", { timeout: 600_000, skip: appsMissing() }, () => {
  test("the new content reaches all nodes, of any page size, once programs with the old file stop (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    const app = new PythonApp(pair.stage, path);
    assert.match(await app.run("INSERT INTO notes (text) VALUES ('in the WAL')"), /^ok/);
    await pair.caughtUp("db", 21);
    const { mode, uid } = statSync(path);
    cp(fileWith(pair, 500, MADE), path);
    await until("the application is named", async () =>
      /process \d+ still uses/.test((await isState(pair, "replaced")())?.reason ?? ""),
    );
    assert.equal(notes(pair.path("replica", "db"))?.rows, 21, "the replica keeps what it has");
    addNote(pair.path("primary", "other"));
    await pair.caughtUp("other", 2);
    await app.end();
    await pair.caughtUp("db", 500);
    assert.deepEqual([statSync(path).mode, statSync(path).uid], [mode, uid]);
    addNote(path);
    await pair.caughtUp("db", 501);
    cp(fileWith(pair, 7, { ...MADE, page_size: 8192 }), path);
    await pair.caughtUp("db", 7);
    addNote(path);
    await pair.caughtUp("db", 8);
    for (const which of ["primary", "replica"] as const) assert.ok(notes(pair.path(which, "db"))?.whole);
  });

  test("a file that is no database is quarantined with a hint; replicas keep theirs, and a good file heals it (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    cp(junkFile(pair), path);
    const { reason } = await until("it is refused", isState(pair, "damaged"));
    assert.match(reason, /overwritten in place.*hangar db export NODE db FILE/);
    assert.throws(() => addNote(path), /locked|not a database/);
    addNote(pair.path("primary", "other"));
    await pair.caughtUp("other", 2);
    assert.deepEqual(notes(pair.path("replica", "db")), { rows: 20, whole: true });
    const exported = join(pair.dirs.primary, ".replication", "good");
    execFileSync("cp", [fileWith(pair, 30, MADE), exported]);
    renameSync(exported, path);
    await pair.caughtUp("db", 30);
    cp("/dev/null", path);
    assert.match((await until("an empty file is refused", isState(pair, "damaged"))).reason, /it is empty/);
    assert.equal(notes(pair.path("replica", "db"))?.rows, 30);
    cp(fileWith(pair, 3, MADE), path);
    await pair.caughtUp("db", 3);
  });

  test("cp between two checkpoints of an application is detected, and a good file heals it (R7)", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    const other = fileWith(pair, 500, MADE);
    const app = new PythonApp(pair.stage, path);
    const checkpoint = (): Promise<string> => app.run("PRAGMA wal_checkpoint(PASSIVE)");
    // So soon after each other that the times of the file say nothing, or not: it is detected either way.
    await app.run("INSERT INTO notes (text) VALUES ('before')");
    await checkpoint();
    cp(other, path);
    await app.run("INSERT INTO notes (text) VALUES ('after')");
    await checkpoint();
    // SQLite may find pages of two databases first.
    await until(
      "it is quarantined",
      async () => (await isState(pair, "replaced")()) ?? (await isState(pair, "damaged")()),
    );
    await app.end();
    renameSync(fileWith(pair, 30, MADE), path);
    await pair.caughtUp("db", 30);
    addNote(path);
    await pair.caughtUp("db", 31);
    assert.ok(notes(pair.path("replica", "db"))?.whole);
  });

  test("a touched file changes nothing, and an overwritten replica gets the primary's copy back", async (t) => {
    const { pair, path } = await notesOnBoth(t);
    const before = (await pair.info("primary"))?.databases["db"];
    await until("it is looked at", () => {
      // Again and again: it is looked at when it stands still, and that is over soon.
      execFileSync("touch", [path]);
      return isState(pair, "replaced")();
    });
    await until("and is as before", async () => {
      const { databases, states } = (await pair.info("primary")) ?? {};
      return states?.["db"] === undefined && databases?.["db"] === before;
    });
    addNote(path);
    await pair.caughtUp("db", 21);
    cp(fileWith(pair, 9, MADE), pair.path("replica", "db"));
    // Nine notes are there until it is noticed.
    await pair.caughtUp("db", 21);
    addNote(path);
    await pair.caughtUp("db", 22);
    assert.ok(notes(pair.path("replica", "db"))?.whole);
  });
});
