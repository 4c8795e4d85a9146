/** A full disk: writes are refused in words, reads go on, and when there is room again so does everything. */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { ApiError } from "#core/errors.ts";
import type { Database } from "#stores/database.ts";
import { openSqlite } from "#stores/sqlite/database.ts";
import { openConnection } from "#stores/sqlite/open.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { Ext4 } from "./ext4.ts";
import { fill } from "./fill.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";
import { type Acks, addCounter, countUp, examine, noteAck, SCHEMA } from "./store/load.ts";

const isFull = (thrown: unknown): boolean => thrown instanceof ApiError && thrown.code === "storage_full";

/** Counts up from `from` until the disk is full; answers with the last number that was acknowledged. */
async function countUntilFull(database: Database, from: number): Promise<number> {
  for (let n = from; ; n++) {
    try {
      assert.ok((await database.write(countUp(1, n))).ok);
    } catch (thrown) {
      assert.ok(isFull(thrown), String(thrown));
      return n - 1;
    }
  }
}

const appName = (i: number): string => `app-${i}`;
const create = (daemon: Daemon, i: number) => daemon.call("POST", "/v1/apps", { app_name: appName(i) });

/** A platform that has created apps until its disk was full to the last byte. */
async function fullOfApps(t: TestContext): Promise<{ disk: Ext4; daemon: Daemon; apps: number }> {
  const disk = new Ext4(t, 12);
  const daemon = await startDaemon(t, join(disk.path, "data"));
  for (let i = 0; i < 20; i++) {
    assert.equal((await create(daemon, i)).status, 201);
    const { status } = await daemon.call("POST", `/v1/apps/${appName(i)}/secrets/S`, { value: "v".repeat(5000) });
    assert.equal(status, 201);
  }
  fill(disk.path);
  let apps = 20;
  while ((await create(daemon, apps)).status === 201) apps++;
  return { disk, daemon, apps };
}

if (await ownMounts(import.meta.filename)) {
  suite("full disk", { skip: mountsMissing() }, () => {
    test("the store refuses writes cleanly, serves reads, and recovers by itself (S3)", async (t) => {
      const disk = new Ext4(t, 12);
      const file = join(disk.path, "hangar.db");
      const acks: Acks = new Map();
      const database = await openSqlite(file, { onBroken: (error) => assert.fail(error) });
      await database.write([...SCHEMA, addCounter(1), addCounter(2)]);
      for (let n = 1; n <= 1000; n++) assert.ok((await database.write(countUp(1, n))).ok);
      const free = fill(disk.path);

      // What is left inside the files is used up first; from then on every write is refused.
      let last = await countUntilFull(database, 1001);
      for (let i = 0; i < 50; i++) {
        await assert.rejects(database.write(countUp(1, last + 1)), isFull);
        const [row] = await database.read<{ n: number }>("SELECT n FROM counters WHERE id = 1");
        assert.equal(row?.n, last, "a refused write is not seen");
      }
      // Many at once share a transaction, and its refusal.
      const crowd = Array.from({ length: 20 }, () => database.write(countUp(2, 1)));
      const settled = await Promise.allSettled(crowd);
      assert.ok(settled.every((one) => one.status === "rejected" && isFull(one.reason)));

      free();
      for (let i = 0; i < 100; i++) assert.ok((await database.write(countUp(1, ++last))).ok);
      noteAck(acks, 1, last);
      await database.close();
      const db = openConnection(file);
      assert.deepEqual(examine(db, acks), { lost: 0, wrong: [] });
      db.close();
      t.diagnostic(`${last} acknowledged, ${last} there; 70 refused as storage_full`);
    });

    test("the platform answers 503 storage_full, serves reads, and recovers when there is room (S3)", async (t) => {
      const disk = new Ext4(t, 12);
      const daemon = await startDaemon(t, join(disk.path, "data"));
      assert.equal((await create(daemon, 0)).status, 201);
      const free = fill(disk.path);

      let made = 1;
      let refused = 0;
      while (refused < 20) {
        const { status, body, headers } = await create(daemon, made);
        if (status === 201) made++;
        else {
          refused++;
          assert.deepEqual([status, body["status"], body["retryable"]], [503, "storage_full", true]);
          assert.match(headers.get("retry-after") ?? "", /^\d+$/);
          assert.equal((await daemon.call("GET", `/v1/apps/${appName(made)}`)).status, 404, "nothing was changed");
          assert.equal((await daemon.call("GET", `/v1/apps/${appName(0)}`)).status, 200, "reads go on");
        }
      }

      // Far more than the last block of any file holds: the log cannot be written either, and that harms nobody.
      for (let i = 0; i < 300; i++) assert.equal((await daemon.call("GET", "/v1/orgs")).status, 200);

      free();
      assert.equal((await create(daemon, made)).status, 201, "and without a restart it goes on");
      const { body } = await daemon.call("GET", "/v1/apps");
      assert.equal(body["total_apps"], made + 1);
      daemon.child.signal("SIGTERM");
      assert.deepEqual(await daemon.child.ended, { code: 0, signal: null });
      const log = readFileSync(join(disk.path, "data/hangar.log"), "utf8").trimEnd().split("\n");
      assert.match(log.at(-1) ?? "", /"stopped"/, "the log goes on too");
    });

    test("deleting works with not a byte free (S3b)", async (t) => {
      const { disk, daemon, apps } = await fullOfApps(t);
      for (let i = 0; i < 20; i++) {
        const { status, body } = await daemon.call("DELETE", `/v1/apps/${appName(i)}`);
        assert.equal(status, 202, `delete ${i}: ${JSON.stringify(body)}`);
        assert.equal((await daemon.call("GET", `/v1/apps/${appName(i)}`)).status, 404);
        fill(disk.path);
      }
      assert.equal((await daemon.call("GET", "/v1/apps")).body["total_apps"], apps - 20);
      rmSync(join(disk.path, "filler"));
      assert.equal((await create(daemon, apps)).status, 201);
    });

    test("control: without the ballast deleting fails (S3b)", async (t) => {
      const { disk, daemon } = await fullOfApps(t);
      rmSync(join(disk.path, "data/hangar.db-ballast"));
      fill(disk.path);
      const { status, body } = await daemon.call("DELETE", `/v1/apps/${appName(0)}`);
      assert.deepEqual([status, body["status"]], [503, "storage_full"]);
    });
  });
}
