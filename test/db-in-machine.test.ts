/** A node of a replicated database in a machine: what it needs it finds at its own socket, and only what is its app's. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "#core/clock.ts";
import { freePort } from "#proxy/fixtures.ts";
import { type InMachine, inMachine } from "#replication/in-machine.ts";
import { inside } from "./inside.ts";
import { tempDir, until } from "./support.ts";

const run = promisify(execFile);
const MAIN = join(import.meta.dirname, "../src/replication/main.ts");

const REQUEST = { method: "POST", path: "/stream", body_sha256: "0".repeat(64) };

/** Whether the node of one machine takes what another machine's node signed for its own. */
async function believes(one: InMachine, other: InMachine): Promise<boolean> {
  const { headers, nonce } = await other.credentials.sign(REQUEST, systemClock.now());
  return (await one.credentials.verify(REQUEST, headers, systemClock.now())) === nonce;
}

suite("replication node in a machine", () => {
  test("a node uses its app's lease, and only machines of its app find it", async (t) => {
    const platform = await inside(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "other" } });
    const [web1, web2, stranger] = [
      await platform.machine("web-1"),
      await platform.machine("web-2"),
      await platform.machine("other-1", { app: "other" }),
    ];
    const [one, two, three] = [
      await inMachine(web1.socket),
      await inMachine(web2.socket),
      await inMachine(stranger.socket),
    ];
    assert.equal(one.url(20202), `http://${web1.id}.vm.web.internal:20202`);

    const candidate = { node: "a", url: one.url(20202), term: 0, complete_term: 0 };
    const lease = await one.leases.acquire(candidate, 10_000);
    assert.equal(lease?.node, "a");
    assert.deepEqual(await two.leases.holder(), lease, "machines of one app have one lease");
    assert.equal(await two.leases.acquire({ ...candidate, node: "b" }, 10_000), undefined);
    assert.equal(await three.leases.holder(), undefined, "another app has its own");
    assert.deepEqual((await platform.ask("GET /v1/apps/web/db_leases/default")).body, { lease });

    assert.equal(await believes(one, two), true);
    assert.equal(await believes(one, three), false);
  });

  test("a program of the machine asks its node for its backups, and to restore; another app's is refused", async (t) => {
    const platform = await inside(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "other" } });
    const own = await platform.machine("web-1");
    const stranger = await platform.machine("other-1", { app: "other" });
    const [dir, listen] = [tempDir(), `127.0.0.1:${await freePort()}`];
    const db = new DatabaseSync(join(dir, "app.db"));
    t.after(() => db.close());
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (who TEXT); INSERT INTO t VALUES ('kept')");
    const words = ["--machine", "--listen", listen];
    const node = spawn(
      process.execPath,
      [MAIN, ...words, "--identity-socket", own.socket, "--dir", dir, "--backup", tempDir()],
      {
        stdio: "ignore",
      },
    );
    t.after(() => node.kill("SIGKILL"));
    const asked = async ({ socket }: { socket: string }, ...more: string[]) =>
      await run(process.execPath, [MAIN, ...words, "--identity-socket", socket, ...more]);
    const last = async (): Promise<string | undefined> => {
      const { stdout } = await asked(own, "--backups").catch(() => ({ stdout: '{"databases":[]}' }));
      return (JSON.parse(stdout) as { databases: { last: string }[] }).databases[0]?.last;
    };
    const txid = await until("the database is backed up", last);
    // The platform is in this thread: waiting inside SQLite would keep the node from its lease.
    await until("the node lets it write", () => {
      try {
        db.exec("DELETE FROM t");
        return true;
      } catch {
        return undefined;
      }
    });
    await until("its loss is backed up", async () => ((await last()) ?? "") > txid || undefined);
    const { stdout } = await asked(own, "--restore=app.db", `--txid=${txid}`);
    assert.match(stdout, /"name":"app\.db","position":"[0-9a-f]{16}\/[0-9a-f]{16}","written_at":"20/);
    assert.deepEqual(
      db
        .prepare("SELECT who FROM t")
        .all()
        .map(({ who }) => who),
      ["kept"],
    );
    await assert.rejects(asked(own, "--restore=app.db", "--at=yesterday"), /"yesterday" is not a time/);
    await assert.rejects(asked(stranger, "--restore=app.db"), /must be signed with the key of the cluster/);
  });

  test("a node outside of a machine is refused with the options to use instead", async () => {
    await assert.rejects(inMachine(join(tempDir(), "api")), /works inside machines; elsewhere say --primary/);
  });

  test("a node reaches nothing else of its app, and no other app's leases", async (t) => {
    const platform = await inside(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "other" } });
    const machine = await platform.machine("web-1");
    assert.equal((await platform.from(machine, "GET /v1/apps/other/db_leases/default")).status, 404);
    const refused = [
      "POST /v1/apps/web/secrets",
      "GET /v1/apps/web",
      "GET /v1/apps/web/machines",
      "DELETE /v1/apps/web",
    ];
    for (const target of refused) {
      const { status } = await platform.from(machine, target);
      assert.equal(status, 401, target);
    }
  });
});
