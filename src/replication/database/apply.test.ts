import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { decodeLtx, encodeLtx } from "../ltx/codec.ts";
import type { Step } from "../wal/wal-writer.ts";
import { Application, assertTrue, captureAll, look, makeOther, missing, open, replicaOf } from "./fixtures.ts";
import { PositionMismatch } from "./state.ts";

suite("applying a transaction", () => {
  test("one that does not lead to its checksum is refused before anything is written", () => {
    const [here, there] = [tempDir(), tempDir()];
    makeOther(there);
    const app = new Application(join(here, "db"));
    const primary = open(here, "db").database;
    primary.release();
    const replica = replicaOf(primary, there).database;
    app.write();
    captureAll(primary);
    const [good = Buffer.alloc(0)] = missing(primary, replica);
    const { header, pages, post_checksum } = decodeLtx(good);
    // A whole file by its own checksum, of pages that are not those of the primary.
    const wrong = encodeLtx(header, pages, post_checksum ^ 1n);
    const [position, frames] = [replica.position, replica.wal_frames];
    assert.throws(() => replica.apply([wrong], 1), PositionMismatch);
    assert.deepEqual([replica.position, replica.wal_frames, replica.log.last], [position, frames, position.txid]);
    replica.apply([good], 1);
    assert.deepEqual(replica.position, primary.position);
    assert.deepEqual(look(join(there, "db")), { integrity: "ok", sum: 3000, entries: 1 });
    for (const database of [primary, replica]) database.close();
    app.close();
  });

  // An application waits for the write lock, and gets it in the moment in which it is not held.
  for (const moment of ["unlocked", "truncated"] as const) {
    test(`a write of somebody else while the WAL is emptied is noticed, once it is ${moment}`, () => {
      const [here, there] = [tempDir(), tempDir()];
      makeOther(there);
      const app = new Application(join(here, "db"));
      const primary = open(here, "db").database;
      primary.release();
      replicaOf(primary, there).database.close();
      const path = join(there, "db");
      const local = new DatabaseSync(path, { timeout: 0 });
      let writes = true;
      const step = (reached: Step): void => {
        if (reached === moment && writes) local.exec("UPDATE account SET balance = balance + 1");
      };
      const opened = open(there, "db", { step, sizes: { checkpoint_frames: 1 } });
      const { database } = opened;
      app.write();
      captureAll(primary);
      assert.throws(() => {
        for (let tries = 0; tries < 100; tries++) {
          database.apply(missing(primary, database), 1);
          app.write();
          captureAll(primary);
        }
      }, PositionMismatch);
      writes = false;
      // Read anew, it says that it is somewhere else.
      const claimed = database.position.checksum;
      database.abandon();
      const again = open(there, "db");
      assert.notEqual(again.database.position.checksum, claimed);
      assertTrue(again);
      local.close();
      for (const one of [primary, again.database]) one.close();
      app.close();
    });
  }
});
