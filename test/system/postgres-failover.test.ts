/**
 * The primary of PostgreSQL dies under load and its standby is promoted. The platform has both in its URL and goes on
 * with the new one, without a restart; what was acknowledged is there.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { postgresMissing, startPostgres } from "../postgres.ts";
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
});
