import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { decodeLtx, encodeLtx } from "../ltx/codec.ts";
import { Application, captureAll, look, makeOther, missing, open, replicaOf } from "./fixtures.ts";
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
});
