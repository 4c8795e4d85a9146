/**
 * The primary of PostgreSQL dies under load and its standby is promoted. The platform has both in its URL and goes on
 * with the new one, without a restart; what was acknowledged is there.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { startRelay } from "../relay.ts";
import { runs, tempDir, until, within } from "../support.ts";
import { startDaemon } from "./daemon.ts";

const skip = postgresMissing() ?? (process.env["HANGAR_TEST_POSTGRES_URL"] ? "needs a server of its own" : undefined);

suite("PostgreSQL failover", { skip }, () => {
  test("a promoted standby is used without a restart, and no acknowledged write is lost", async (t) => {
    const primary = await startPostgres();
    t.after(() => primary.stop());
    const url = new URL((await primary.database()).replace("@/", "@localhost/"));
    const standby = await primary.standby();
    t.after(() => standby.stop());
    const hosts = [standby.dir, url.searchParams.get("host")].join(",");
    const both = `postgres://hangar@${url.pathname}?host=${encodeURIComponent(hosts)}&target_session_attrs=read-write`;
    const daemon = await startDaemon(t, tempDir(), ["--database", both, "--log-level", "error", "--host-lease", "60"]);
    await daemon.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const ids: string[] = [];
    for (let made = 0; made < 4; made++) {
      const wish = { config: { image: "web:1" }, skip_launch: true };
      ids.push(String((await daemon.call("POST", "/v1/apps/web/machines", wish)).body["id"]));
    }
    const acknowledged = new Map(ids.map((id) => [id, 0]));
    let unsure = 0;
    let writing = true;
    const load = ids.map(async (id) => {
      for (let n = 1; writing; n++) {
        const path = `/v1/apps/web/machines/${id}/metadata/n`;
        const { status } = await daemon.call("POST", path, { value: String(n) });
        if (status === 204) acknowledged.set(id, n);
        else unsure++;
      }
    });
    const progress = (): number => [...acknowledged.values()].reduce((sum, n) => sum + n, 0);
    await until("writes go on", () => progress() > runs(40, 400));
    await primary.crash();
    const died = performance.now();
    const before = progress();
    await delay(500);
    standby.promote();
    await until("writes go on at the new primary", () => progress() > before + 40);
    const took = performance.now() - died;
    writing = false;
    await Promise.all(load);
    t.diagnostic(
      `back ${took.toFixed(0)} ms after the primary died (promoted after 500 ms); ${unsure} answers were 503`,
    );
    for (const [id, n] of acknowledged) {
      const { body } = await daemon.call("GET", `/v1/apps/web/machines/${id}/metadata`);
      assert.ok(Number(body["n"]) >= n, `machine ${id} has ${String(body["n"])}, ${n} was acknowledged`);
    }
    assert.ok(took < within(20_000), `${took} ms`);
    assert.equal((await fetch(`${daemon.base_url}/readyz`)).status, 200);
  });

  test("an old primary that was not fenced is left within seconds, and refused by later starts, also alone", async (t) => {
    const primary = await startPostgres();
    t.after(() => primary.stop());
    const url = new URL((await primary.database()).replace("@/", "@localhost/"));
    const old_dir = url.searchParams.get("host") ?? "";
    const standby = await primary.standby();
    t.after(() => standby.stop());
    const relay = await startRelay(`${standby.dir}/.s.PGSQL.5432`);
    t.after(() => relay.close());
    const old = await startRelay(`${old_dir}/.s.PGSQL.5432`);
    t.after(() => old.close());
    const both = `postgres://hangar@127.0.0.1:${old.port},127.0.0.1:${relay.port}${url.pathname}`;
    const dir = tempDir();
    const flags = ["--database", both, "--log-level", "error", "--host-lease", "60"];
    const daemon = await startDaemon(t, dir, flags);
    await daemon.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const [there, here] = [standby.dir, old_dir].map(
      (host) => new pg.Client({ host, user: "hangar", database: url.pathname.slice(1) }),
    );
    assert.ok(there && here);
    await here.connect();
    // Nobody waits for a standby that went its own way.
    await here.query("ALTER SYSTEM SET synchronous_standby_names = ''");
    await here.query("SELECT pg_reload_conf()");
    standby.promote();
    await there.connect();
    const promoted = performance.now();
    const apps = async (client: pg.Client): Promise<string[]> =>
      (await client.query<{ name: string }>("SELECT name FROM apps ORDER BY name")).rows.map(({ name }) => name);
    let made = 0;
    await until("writes go to the new primary", async () => {
      await daemon.call("POST", "/v1/apps", { app_name: `app${made++}`, org_slug: "personal" });
      return (await apps(there)).some((name) => name.startsWith("app"));
    });
    t.diagnostic(`the old primary was left ${(performance.now() - promoted).toFixed(0)} ms after the promotion`);
    const before = await apps(here);
    for (let index = 0; index < 20; index++)
      assert.equal(
        (await daemon.call("POST", "/v1/apps", { app_name: `late${index}`, org_slug: "personal" })).status,
        201,
      );
    assert.deepEqual(await apps(here), before, "the old one gets nothing more, though it comes first in the URL");
    assert.match(daemon.child.complaints, /old primary/);
    daemon.child.signal("SIGTERM");
    await daemon.child.ended;
    // The new one cannot be reached: to go on with the old one would fork the data.
    relay.silence();
    const again = startDaemon(t, dir, flags);
    again.catch(() => {});
    await until("it waits", async () => existsSync(join(dir, "database-timelines")));
    await delay(4000);
    assert.deepEqual(await apps(here), before);
    relay.restore();
    const { status } = await (await again).call("POST", "/v1/apps", { app_name: "back", org_slug: "personal" });
    assert.equal(status, 201);
    assert.ok((await apps(there)).includes("back"));
    await Promise.all([here.end(), there.end()]);
  });
});
