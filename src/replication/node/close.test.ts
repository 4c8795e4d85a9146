/** A closed node does not write to its directory any more. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { Election } from "../commands.ts";
import { look } from "../database/fixtures.ts";
import { RowLeases } from "../election/row-leases.ts";
import { SqliteRows } from "../election/sqlite-rows.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { story, until } from "./fixtures.ts";
import { StatusFiles } from "./status-files.ts";

const ROUNDS = 20;

/** Resolves when the thread pool has finished everything begun so far: it is FIFO, so the last write ends last. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next));
}

function statusFiles(): { dir: string; files: StatusFiles } {
  const dir = mkdtempSync(join(tmpdir(), "hangar-status-"));
  mkdirSync(join(dir, ".replication"));
  return { dir, files: new StatusFiles(dir) };
}

/** Waits until the files are being written beside other work: their timer was set before this one. */
const writing = (): Promise<void> => new Promise((next) => setTimeout(next, REPLICATION_LIMITS.status_files_ms));

const names = (dir: string): string[] => readdirSync(dir, { recursive: true }).map(String).sort();

suite("closing a node", () => {
  test("pending status files are written before close returns, and none later", async (t) => {
    await Promise.all(
      Array.from({ length: ROUNDS }, async () => {
        const { dir, files } = statusFiles();
        t.after(() => rmSync(dir, { recursive: true }));
        for (const name of ["a", "b", "c"]) files.position(name, { txid: 1, checksum: 1n << 63n });
        await writing();
        await files.close();
        const there = names(dir);
        assert.deepEqual(there, [".replication", "a-pos", "b-pos", "c-pos"]);
        files.position("late", { txid: 1, checksum: 1n << 63n });
        files.flush();
        await settled();
        assert.deepEqual(names(dir), there);
      }),
    );
  });

  test("an older status file in progress does not replace a newer one", async (t) => {
    await Promise.all(
      Array.from({ length: ROUNDS }, async () => {
        const { dir, files } = statusFiles();
        t.after(() => rmSync(dir, { recursive: true }));
        files.lag(1);
        await writing();
        files.lag(2);
        files.primary("new:1");
        await files.close();
        assert.equal(readFileSync(join(dir, ".lag"), "utf8"), "2\n");
        assert.equal(readFileSync(join(dir, ".primary"), "utf8"), "new:1\n");
        assert.deepEqual(names(dir), [".lag", ".primary", ".replication"]);
      }),
    );
  });

  story("a primary that retires hands over first: the next one has what was written last", async (scene) => {
    const dirs = [scene.dir(), scene.dir()] as const;
    const path = join(scene.dir(), "lease.db");
    const elected = (): Election => {
      const leases = new RowLeases(new SqliteRows(path), systemClock);
      scene.later(() => leases.close());
      // Longer than the test would wait for a lease that is not given back.
      return { kind: "lease", leases, candidate: true, ttl_ms: 60_000, renew_ms: 60 };
    };
    const first = await scene.start(dirs[0], elected());
    await until("the first is primary", () => first.node.role.kind === "primary");
    const app = await scene.app(dirs[0]);
    await app.write();
    const second = await scene.start(dirs[1], elected());
    await until("the second has everything", () => second.node.complete_term === first.node.term);
    for (let i = 0; i < 20; i++) await app.write();
    app.close();
    // In the same turn, so that the node has not seen it.
    new DatabaseSync(join(dirs[0], "late")).exec("PRAGMA journal_mode = WAL; CREATE TABLE t(x)");
    await first.retire();
    assert.equal(second.node.role.kind, "primary");
    assert.equal(look(join(dirs[1], "db")).entries, 21);
    const late = new DatabaseSync(join(dirs[1], "late"), { readOnly: true });
    assert.deepEqual(late.prepare("SELECT count(*) AS n FROM t").get()?.["n"], 0);
    late.close();
  });

  story("a closed node takes no role any more, and a running import is aborted", async (scene) => {
    const dir = scene.dir();
    const { node, url, close } = await scene.start(dir, { kind: "primary" });
    const asked = request(`${url}/import?name=other`, { method: "POST" });
    asked.on("error", () => undefined).write("SQLite format 3\0");
    const file = join(dir, ".replication", "other.import");
    await until("the file is coming", () => existsSync(file));
    await close();
    assert.ok(!existsSync(file), "the file is removed before the node is closed");
    await assert.rejects(node.becomePrimary(node.term + 1), /is being closed/);
    await assert.rejects(node.becomeReplica("http://127.0.0.1:1"), /is being closed/);
    await assert.rejects(
      node.during(() => Promise.resolve()),
      /is being closed/,
    );
  });
});
