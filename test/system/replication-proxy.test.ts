/** The HTTP proxy of database nodes, before Python applications: read-your-writes, path rules, and no request lost in failovers. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { runs, until, within } from "../support.ts";
import { appsMissing } from "./replication-apps.ts";
import { post, site } from "./replication-site.ts";

const portIn = async (response: Response): Promise<unknown> => ((await response.json()) as { port: unknown }).port;

suite("HTTP proxy of database nodes", { timeout: runs(300_000, 1_200_000), skip: appsMissing() ?? false }, () => {
  test("writes go to the primary, reads stay local, and a client reads its own writes on every node (R12)", async (t) => {
    const { cluster, proxies, apps, proxyOf } = await site(t, 3);
    const primary = await cluster.primary();
    const primary_app = apps[cluster.members.indexOf(primary)];
    const [other] = cluster.others(primary);
    assert.ok(other);
    const own_app = apps[cluster.members.indexOf(other)];
    for (let n = 0; n < 20; n++) {
      const written = await post(proxyOf(other), `n${n}`);
      assert.equal(written.status, 201);
      assert.equal(await portIn(written), primary_app);
      const txid = written.headers.get("hangar-txid") ?? "";
      assert.match(txid, /^[0-9a-f]{16}$/);
      const cookies = written.headers.getSetCookie();
      assert.equal(cookies[0], "session=1", "the application's own cookie is kept");
      assert.match(cookies[1] ?? "", new RegExp(`^__txid=${txid}; Path=/; Max-Age=300; HttpOnly; SameSite=Lax$`));
      for (const proxy of proxies) {
        const headers = n % 2 ? { cookie: `a=b; __txid=${txid}` } : { "hangar-txid": txid };
        const read = await fetch(`${proxy}/notes/n${n}`, { headers });
        assert.equal(read.status, 200, `note ${n} by ${proxy}`);
      }
    }
    assert.equal(await portIn(await fetch(`${proxyOf(other)}/notes/n1`)), own_app, "reads stay");
    const still = (await (await fetch(`${proxyOf(other)}/static/x.css`)).json()) as { static: number };
    assert.equal(still.static, own_app);
    const visit = await fetch(`${proxyOf(other)}/visit`, { headers: { "x-id": "v" } });
    assert.equal(await portIn(visit), primary_app, "a path that writes goes to the primary");
    // A position that never comes does not keep a reader: the primary answers.
    const far = await fetch(`${proxyOf(other)}/notes/n1`, { headers: { "hangar-txid": "ffffff" } });
    assert.deepEqual([far.status, await portIn(far)], [200, primary_app]);
  });

  test("while primaries are killed no request is lost or repeated, and no acknowledged write is lost (R12)", async (t) => {
    const { cluster, proxyOf } = await site(t, 3, "--ack", "one");
    const failed: string[] = [];
    const done: string[] = [];
    const waits_ms: number[] = [];
    let stopped = false;
    let targets: string[] = [];
    const client = async (name: string): Promise<void> => {
      for (let n = 0; !stopped; n++) {
        const [id, began] = [`${name}-${n}`, performance.now()];
        const proxy = targets[n % targets.length] ?? "";
        try {
          const response = await post(proxy, id, { "idempotency-key": id });
          const text = await response.text();
          if (response.status === 201) done.push(id);
          else failed.push(`${id}: ${response.status} ${text}`);
        } catch (error) {
          failed.push(`${id}: ${String((error as Error).cause ?? error)}`);
        }
        waits_ms.push(performance.now() - began);
      }
    };
    const rounds = runs(1, 10, 50);
    const working: Promise<void>[] = [];
    for (let round = 0; round < rounds; round++) {
      const primary = await cluster.whole();
      // Clients of a proxy that is killed itself cannot be helped: they use the others.
      stopped = true;
      await Promise.all(working.splice(0));
      stopped = false;
      targets = cluster.others(primary).map(proxyOf);
      for (let c = 0; c < 8; c++) working.push(client(`r${round}c${c}`));
      const before = done.length;
      await until("clients write", () => done.length > before + 40);
      await cluster.kill(primary);
      const lost_at = done.length;
      await until("clients write again", () => done.length > lost_at + 40);
      cluster.restart(primary);
    }
    stopped = true;
    await Promise.all(working);
    const last = await cluster.whole();
    const db = new DatabaseSync(cluster.path(last), { readOnly: true, timeout: 5000 });
    const has = new Set(
      db
        .prepare("SELECT id FROM notes")
        .all()
        .map(({ id }) => String(id)),
    );
    db.close();
    assert.deepEqual(failed, []);
    assert.deepEqual(
      done.filter((id) => !has.has(id)),
      [],
      "answered and lost",
    );
    const longest = Math.max(...waits_ms);
    t.diagnostic(`${done.length} requests, ${rounds} failovers, 0 lost, longest wait ${Math.round(longest)} ms`);
    assert.ok(longest <= within(5000), `a request waited ${longest} ms`);
  });
});
