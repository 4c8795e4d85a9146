import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { S3Objects } from "#stores/objects/s3.ts";
import { s3Missing, startS3 } from "../../../test/s3.ts";
import { tempDir } from "../../../test/support.ts";
import { Application, captureAll, look, openAll } from "../database/fixtures.ts";
import { Directory } from "../node/directory.ts";
import { hex16 } from "../position.ts";
import { listBackups } from "./archive.ts";
import { Backup } from "./backup.ts";
import { restore } from "./restore.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Where backups can go, and what a test of that place needs. */
const PLACES: { name: string; skip?: string | undefined; open(t: TestContext): Promise<ObjectStore> }[] = [
  { name: "a folder", open: async () => new LocalObjects(tempDir()) },
  {
    name: "a bucket",
    skip: s3Missing(),
    async open(t) {
      const server = await startS3(tempDir());
      t.after(() => server.stop());
      return new S3Objects(server, systemClock);
    },
  },
];

for (const { name: place, skip, open } of PLACES)
  suite(`backup to ${place} and restore`, { skip: skip ?? false }, () => {
    function scene(dir: string, store: ObjectStore, clock = systemClock, keep_ms?: number) {
      const app = new Application(join(dir, "db"));
      const failed = (error: unknown): void => assert.fail(String(error));
      const log = (): void => undefined;
      const directory = new Directory({
        dir,
        node_id: 1n,
        clock,
        onFailure: failed,
        onTransactions: log,
        onUndone: log,
        log,
      });
      for (const database of openAll(directory)) database.release();
      mkdirSync(join(dir, ".scratch"));
      const keep = keep_ms === undefined ? {} : { keep_ms };
      const backup = new Backup({ directory, store, clock, scratch: join(dir, ".scratch"), log, ...keep });
      const capture = (): void => {
        for (const database of directory) captureAll(database);
        for (const database of directory) database.log.syncNow();
      };
      return { app, directory, backup, capture };
    }

    /** The same folder once more. */
    function reopened(dir: string, store: ObjectStore, clock: typeof systemClock) {
      rmSync(join(dir, ".scratch"), { recursive: true });
      return scene(dir, store, clock);
    }

    test("a database is restored to each backup, by time and by transaction", async (t) => {
      const dir = tempDir();
      let now_ms = 1_700_000_000_000;
      const store = await open(t);
      const { app, directory, backup, capture } = scene(dir, store, { ...systemClock, now: () => now_ms });
      const moments: { at_ms: number; entries: number; txid: number }[] = [];
      for (let round = 0; round < 6; round++) {
        for (let i = 0; i < 7; i++) app.write(900);
        if (round === 3) app.db.exec("DELETE FROM entry WHERE n % 2 = 0; VACUUM");
        capture();
        await backup.once();
        const entries = look(join(dir, "db")).entries;
        moments.push({ at_ms: now_ms, entries, txid: directory.get("db")?.position.txid ?? 0 });
        now_ms += 60_000;
      }
      for (const [i, { at_ms, entries, txid }] of moments.entries()) {
        const by_time = join(dir, ".restored", `time-${i}`);
        mkdirSync(join(dir, ".restored"), { recursive: true });
        const restored = await restore({ store, name: "db", to: by_time, at_ms: at_ms + 1000 });
        assert.equal(restored.position.txid, txid);
        assert.deepEqual(look(by_time), { integrity: "ok", sum: 3000, entries });
        const by_txid = join(dir, ".restored", `txid-${i}`);
        await restore({ store, name: "db", to: by_txid, txid });
        assert.deepEqual(readFileSync(by_txid), readFileSync(by_time));
      }
      await assert.rejects(restore({ store, name: "db", to: join(dir, "x"), at_ms: 1000 }), { name: "RestoreError" });
      await assert.rejects(restore({ store, name: "none", to: join(dir, "x") }), { name: "RestoreError" });
      await assert.rejects(restore({ store, name: "db", to: join(dir, "db") }), { name: "RestoreError" });
      directory.close();
      app.close();
    });

    test("every moment in the retention period is restorable, and objects needed only by older ones are deleted", async (t) => {
      const dir = tempDir();
      let now_ms = 1_700_000_000_000;
      const store = await open(t);
      const clock = { ...systemClock, now: () => now_ms };
      const { app, directory, backup, capture } = scene(dir, store, clock, 2 * DAY_MS);
      const moments: { at_ms: number; entries: number }[] = [];
      const counts: number[] = [];
      // Ten days, in steps of eight hours.
      for (let step = 0; step < 30; step++) {
        app.write(900);
        capture();
        await backup.once();
        moments.push({ at_ms: now_ms, entries: look(join(dir, "db")).entries });
        counts.push((await store.list("db/")).length);
        now_ms += DAY_MS / 3;
      }
      now_ms -= DAY_MS / 3;
      const oldest_ms = now_ms - 2 * DAY_MS;
      for (const [i, { at_ms, entries }] of moments.entries()) {
        const to = join(dir, `.restored-${i}`);
        if (at_ms >= oldest_ms) {
          await restore({ store, name: "db", to, at_ms });
          assert.deepEqual(look(to), { integrity: "ok", sum: 3000, entries }, `moment ${i}`);
        } else if (at_ms < oldest_ms - DAY_MS) {
          await assert.rejects(restore({ store, name: "db", to, at_ms }), { message: /does not go back so far/ });
        }
      }
      assert.ok(Math.max(...counts) <= 18, `at most so many objects at once: ${counts.join(" ")}`);
      // A node that starts later knows when the last snapshot was, and does not begin with another.
      const log = (): void => undefined;
      const again = new Backup({ directory, store, clock, scratch: join(dir, ".scratch"), log });
      const before = await store.list("db/snapshot/");
      await again.once();
      assert.deepEqual(await store.list("db/snapshot/"), before);
      directory.close();
      app.close();
    });

    test("after a divergence, a moment is restored from the history that was current then", async (t) => {
      const [dir, other] = [tempDir(), tempDir()];
      let now_ms = 1_700_000_000_000;
      const store = await open(t);
      const clock = { ...systemClock, now: () => now_ms };
      const lost = scene(dir, store, clock);
      const round = async (on: typeof lost): Promise<void> => {
        on.app.write();
        on.capture();
        await on.backup.once();
        now_ms += 1000;
      };
      await round(lost);
      // What the next primary has: the first transaction, and not the ones the lost primary stored after it.
      lost.directory.close();
      lost.app.close();
      cpSync(dir, other, { recursive: true });
      rmSync(join(other, ".scratch"), { recursive: true });
      const failing = reopened(dir, store, clock);
      for (let i = 0; i < 3; i++) await round(failing);
      const lost_at_ms = now_ms;
      failing.directory.close();
      failing.app.close();
      const next = scene(other, store, clock);
      next.app.db.exec("CREATE TABLE another (x)");
      await round(next);
      await round(next);
      const restored = async (at_ms: number): Promise<{ entries: number; another: boolean }> => {
        const to = join(dir, `.restored-${at_ms}`);
        await restore({ store, name: "db", to, at_ms });
        const db = new DatabaseSync(to, { readOnly: true });
        const another = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'another'").get() !== undefined;
        db.close();
        return { entries: look(to).entries, another };
      };
      assert.deepEqual(await restored(lost_at_ms - 1), { entries: 4, another: false });
      assert.deepEqual(await restored(now_ms), { entries: 3, another: true });
      next.directory.close();
      next.app.close();
    });

    test("a database recreated with another page size is restored with it", async (t) => {
      const dir = tempDir();
      const store = await open(t);
      const { app, directory, backup, capture } = scene(dir, store);
      for (let i = 0; i < 20; i++) app.write(900);
      capture();
      await backup.once();
      app.close();
      for (const end of ["", "-wal", "-shm"]) rmSync(join(dir, `db${end}`), { force: true });
      assert.equal(directory.findDropped().length, 1);
      const next = new Application(join(dir, "db"), 1024);
      next.write();
      for (const database of openAll(directory)) database.release();
      next.write();
      capture();
      await backup.once();
      assert.equal((await store.list("db/snapshot/")).length, 1, "it goes on with changes");
      const to = join(dir, ".restored");
      await restore({ store, name: "db", to });
      assert.deepEqual(look(to), { integrity: "ok", sum: 3000, entries: 2 });
      directory.close();
      next.close();
    });

    test("a restarted backup continues after the last stored transaction", async (t) => {
      const dir = tempDir();
      const store = await open(t);
      const { app, directory, backup, capture } = scene(dir, store);
      app.write();
      capture();
      await backup.once();
      const before = (await store.list("db/")).length;
      app.write();
      capture();
      const log = (): void => undefined;
      const again = new Backup({ directory, store, clock: systemClock, scratch: join(dir, ".scratch"), log });
      await again.once();
      const keys = (await store.list("db/")).map(({ key }) => key);
      assert.equal(keys.length, before + 1);
      assert.equal(keys.filter((key) => key.includes("/snapshot/")).length, 1);
      const last = directory.get("db")?.position.txid ?? 0;
      assert.deepEqual(listBackups(keys), [{ name: "db", snapshots: 1, first: hex16(last - 1), last: hex16(last) }]);
      directory.close();
      app.close();
    });
  });
