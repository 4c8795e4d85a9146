/** What a primary cannot open, or does not know, replicas keep. Only a logged deletion takes a database away. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { until } from "../support.ts";
import { Ext4 } from "./ext4.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";
import { addNote, appsMissing, makeNotes, nodePair, notes, type Pair, PythonApp } from "./replication-apps.ts";

const asideOf = ({ dirs }: Pair): string => join(dirs.replica, ".replication", "aside");

/** The copies a replica has put aside, with their notes. */
function asideNotes(pair: Pair): (number | undefined)[] {
  const folder = asideOf(pair);
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(".db"));
  return files.map((name) => notes(join(folder, name))?.rows);
}

/** What the replica has read again since its primary came back: a note in another database has arrived. */
async function follows(pair: Pair, name: string, rows: number): Promise<void> {
  addNote(pair.path("primary", name));
  await pair.caughtUp(name, rows);
}

if (await ownMounts(import.meta.filename)) {
  suite("databases a primary cannot open", { timeout: 300_000, skip: appsMissing() }, () => {
    test("a database locked by an application while the primary restarts stays on the replica (R6)", async (t) => {
      const pair = await nodePair(t);
      const primary = await pair.start("primary");
      await pair.start("replica");
      makeNotes(pair.path("primary", "held"), 20);
      makeNotes(pair.path("primary", "free"), 10);
      await pair.caughtUp("held", 20);
      await pair.caughtUp("free", 10);
      const app = new PythonApp(pair.stage, pair.path("primary", "held"));
      assert.match(await app.run("BEGIN IMMEDIATE"), /^ok/);
      await primary.end("SIGKILL");
      await pair.start("primary");
      await follows(pair, "free", 11);
      const said = (await pair.info("primary"))?.states["held"];
      assert.equal(said?.state, "busy", JSON.stringify(said));
      assert.deepEqual(notes(pair.path("replica", "held")), { rows: 20, whole: true });
      assert.deepEqual(asideNotes(pair), [], "nothing was taken away");
      assert.match(await app.run("INSERT INTO notes (text) VALUES ('late')"), /^ok/);
      assert.match(await app.run("COMMIT"), /^ok/);
      await pair.caughtUp("held", 21);
      assert.deepEqual((await pair.info("primary"))?.states, {});
    });

    test("a primary with a full or a new, empty disk deletes nothing on its replica (R6)", {
      skip: mountsMissing(),
    }, async (t) => {
      const disk = new Ext4(t, 16);
      const pair = await nodePair(t, join(disk.path, "data"));
      mkdirSync(pair.dirs.primary);
      const primary = await pair.start("primary");
      await pair.start("replica");
      makeNotes(pair.path("primary", "one"), 20);
      makeNotes(pair.path("primary", "two"), 20);
      await pair.caughtUp("one", 20);
      await pair.caughtUp("two", 20);
      await primary.end("SIGKILL");
      for (const name of ["one", "two"])
        for (const end of ["-wal", "-shm"]) rmSync(pair.path("primary", name) + end, { force: true });
      // Until not a byte more fits.
      assert.throws(() =>
        execFileSync("dd", ["if=/dev/zero", `of=${join(disk.path, "ballast")}`, "bs=4k"], { stdio: "pipe" }),
      );
      const full = await pair.start("primary");
      await until("the replica follows again", async () => ((await pair.info("primary"))?.replicas.length ?? 0) === 1);
      assert.deepEqual(notes(pair.path("replica", "one")), { rows: 20, whole: true });
      await full.end("SIGKILL");
      rmSync(join(disk.path, "ballast"));
      await pair.start("primary");
      await follows(pair, "one", 21);
      await follows(pair, "two", 21);

      // A new disk in place of the old one.
      renameSync(pair.dirs.primary, join(disk.path, "old"));
      mkdirSync(pair.dirs.primary);
      const gone = await until("the node notices", async () => (await pair.info("primary")) === undefined);
      assert.ok(gone);
      await pair.start("primary");
      makeNotes(pair.path("primary", "three"), 3);
      await pair.caughtUp("three", 3);
      for (const name of ["one", "two"]) assert.deepEqual(notes(pair.path("replica", name)), { rows: 21, whole: true });
      assert.equal((await pair.info("replica"))?.states["one"]?.state, "kept");
      assert.deepEqual(asideNotes(pair), []);
    });

    test("a logged deletion moves the replica's copy aside, also if it was offline meanwhile (R6)", async (t) => {
      const pair = await nodePair(t);
      await pair.start("primary");
      let replica = await pair.start("replica");
      const remove = (name: string): void => {
        for (const end of ["", "-wal", "-shm"]) rmSync(pair.path("primary", name) + end, { force: true });
      };
      for (const [rows, name] of ["zero", "first", "second"].entries()) {
        makeNotes(pair.path("primary", name), rows + 1);
        await pair.caughtUp(name, rows + 1);
      }
      remove("first");
      await until("it is moved aside", () => asideNotes(pair).length === 1);
      assert.ok(!existsSync(pair.path("replica", "first")));
      assert.deepEqual(asideNotes(pair), [2]);
      await replica.end("SIGKILL");
      remove("second");
      await until("it is logged", async () => (await pair.info("primary"))?.databases["second"] === undefined);
      replica = await pair.start("replica");
      await until("it is moved aside", () => asideNotes(pair).length === 2);
      assert.deepEqual(
        asideNotes(pair).toSorted((a = 0, b = 0) => a - b),
        [2, 3],
      );
      await follows(pair, "zero", 2);
    });

    test("a database that cannot be opened on the replica is not overwritten, and follows later (R6)", async (t) => {
      const pair = await nodePair(t);
      await pair.start("primary");
      const replica = await pair.start("replica");
      makeNotes(pair.path("primary", "held"), 20);
      makeNotes(pair.path("primary", "free"), 10);
      await pair.caughtUp("held", 20);
      await pair.caughtUp("free", 10);
      await replica.end("SIGKILL");
      const app = new PythonApp(pair.stage, pair.path("replica", "held"));
      assert.match(await app.run("BEGIN IMMEDIATE"), /^ok/);
      await pair.start("replica");
      await follows(pair, "free", 11);
      addNote(pair.path("primary", "held"));
      assert.equal((await pair.info("replica"))?.states["held"]?.state, "busy");
      assert.equal(notes(pair.path("replica", "held"))?.rows, 20);
      assert.match(await app.run("ROLLBACK"), /^ok/);
      await pair.caughtUp("held", 21);
      assert.deepEqual(asideNotes(pair), []);
    });

    test("a refused file is forgotten when it is gone; a file lost without a deletion is missing", async (t) => {
      const pair = await nodePair(t);
      let primary = await pair.start("primary");
      const junk = pair.path("primary", "junk");
      writeFileSync(junk, Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(5000, 7)]));
      await until("it is refused", async () => (await pair.info("primary"))?.refused["junk"] !== undefined);
      rmSync(junk);
      await until("it is forgotten", async () => (await pair.info("primary"))?.refused["junk"] === undefined);
      makeNotes(pair.path("primary", "lost"), 5);
      await pair.start("replica");
      await pair.caughtUp("lost", 5);
      await primary.end("SIGKILL");
      for (const end of ["", "-wal", "-shm"]) rmSync(pair.path("primary", "lost") + end, { force: true });
      primary = await pair.start("primary");
      const said = await until("it is missing", async () => (await pair.info("primary"))?.states["lost"]);
      assert.equal(said.state, "missing");
      makeNotes(pair.path("primary", "other"), 1);
      await pair.caughtUp("other", 1);
      assert.deepEqual(notes(pair.path("replica", "lost")), { rows: 5, whole: true });
    });
  });
}
