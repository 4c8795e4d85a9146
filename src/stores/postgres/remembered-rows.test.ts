/** Reads start with cached rows: changes of other processes must still be visible in the response. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { testPlatform } from "../../../test/platform.ts";
import { postgresMissing, startPostgres } from "../../../test/postgres.ts";
import { tempDir } from "../../../test/support.ts";

suite("reads that start with cached rows", { skip: postgresMissing() }, () => {
  test("what another process changed, deleted or revoked is visible in the next response", async (t) => {
    const server = await startPostgres();
    t.after(() => server.stop());
    const HANGAR_DATABASE_URL = await server.database();
    const one = await testPlatform(t, { HANGAR_DATABASE_URL });
    const HANGAR_DATA_DIR = tempDir();
    writeFileSync(join(HANGAR_DATA_DIR, "master.key"), readFileSync(join(one.data_dir, "master.key")), { mode: 0o600 });
    const other = await testPlatform(t, { HANGAR_DATABASE_URL, HANGAR_DATA_DIR, HANGAR_ROLE: "control" });
    const made = await other.ask("POST /v1/orgs", { body: { name: "Acme", slug: "acme" } });
    assert.equal(made.status, 201, made.text);
    const app = { body: { app_name: "web", org_slug: "acme" } };
    assert.equal((await other.ask("POST /v1/apps", app)).status, 201);
    const minted = await other.ask("POST /v1/orgs/acme/tokens", { body: { name: "ci", kind: "org" } });
    assert.equal(minted.status, 201, minted.text);
    const { token } = minted.body;
    const body = { config: { image: "web:1" }, skip_launch: true };
    assert.equal((await one.ask("POST /v1/apps/web/machines", { body })).status, 200);
    const list = (path = "/v1/apps/web/machines") => one.ask(`GET ${path}`, { token });
    const apps = "/v1/apps?org_slug=acme";
    // The first of each is cached, the second starts with it.
    for (let times = 0; times < 2; times++) {
      assert.equal((await list()).body.length, 1);
      assert.equal((await list(apps)).body.total_apps, 1);
      assert.equal((await list("/v1/apps/web")).body.name, "web");
    }

    assert.equal((await other.ask("DELETE /v1/apps/web?force=true")).status, 202);
    assert.equal((await list()).status, 404, "the app is deleted");
    assert.equal((await list("/v1/apps/web")).status, 404);
    assert.deepEqual((await list(apps)).body.apps, []);

    assert.equal((await other.ask("POST /v1/apps", app)).status, 201);
    assert.deepEqual((await list()).body, [], "another app of the same name has no machines yet");
    assert.equal((await list()).status, 200);

    assert.equal((await other.ask("DELETE /v1/apps/web")).status, 202);
    assert.equal((await other.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } })).status, 201);
    assert.equal((await list()).status, 404, "an app of that name is another organization's now");

    assert.equal((await list(apps)).status, 200);
    assert.equal((await other.ask(`DELETE /v1/orgs/acme/tokens/${minted.body.id}`)).status, 200);
    assert.equal((await list(apps)).status, 401, "the token was revoked");
    assert.equal((await list()).status, 401);
  });
});
