/** Clients written in Go send "" for a string that is not set: where a string is optional, that is absence. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type TestPlatform, testPlatform } from "./platform.ts";

/** What a Go client's structs look like on the wire when only what is required is set. */
async function filled({ ask }: TestPlatform) {
  const app = await ask("POST /v1/apps", { body: { app_name: "web", org_slug: "", network: "" } });
  const volume = await ask("POST /v1/apps/web/volumes", {
    body: { name: "data", region: "", fstype: "", snapshot_id: "", source_volume_id: "", compute_image: "" },
  });
  const machine = await ask("POST /v1/apps/web/machines", {
    body: { name: "", region: "", config: { image: "web:1" } },
  });
  return { app, volume, machine };
}

suite("empty strings from clients that cannot omit a field", () => {
  test("an app gets the default network, a volume and a machine their default region", async (t) => {
    const { app, volume, machine } = await filled(await testPlatform(t));
    assert.deepEqual(
      [app.status, app.body.network, app.body.organization?.slug],
      [201, "default", "personal"],
      app.text,
    );
    assert.deepEqual([volume.status, volume.body.region], [200, "local"], volume.text);
    assert.deepEqual([machine.status, machine.body.region], [200, "local"], machine.text);
    assert.notEqual(machine.body.name, "");
  });

  test("actions, metadata, leases, addresses and releases accept empty strings, too", async (t) => {
    const platform = await testPlatform(t);
    const { machine } = await filled(platform);
    const own = `/v1/apps/web/machines/${machine.body.id}`;
    await platform.ask(`GET ${own}/wait?state=started`);
    const config = { image: "web:2" };
    const bodies: [string, object][] = [
      [`POST ${own}`, { id: "", name: "", region: "", current_version: "", config }],
      [`PATCH ${own}`, { id: "", name: "", region: "", current_version: "", config }],
      [`PATCH ${own}/metadata`, { metadata: { a: "b" }, machine_version: "", updated_at: "" }],
      [`POST ${own}/lease`, { description: "" }],
      ["POST /v1/apps/web/ip_assignments", { type: "v6", region: "", org_slug: "", network: "", service_name: "" }],
      ["POST /v1/apps/web/releases", { description: "", strategy: "", definition: {} }],
    ];
    for (const [target, body] of bodies) {
      const { status, text } = await platform.ask(target, { body });
      assert.ok(status < 300, `${target}: ${status} ${text}`);
    }
    const { nonce } = (await platform.ask(`GET ${own}/lease`)).body.data;
    const headers = { "svc-machine-lease-nonce": nonce };
    const stopped = await platform.ask(`POST ${own}/stop`, { body: { id: "", signal: "", timeout: "" }, headers });
    assert.equal(stopped.status, 200, stopped.text);
  });

  test("required fields stay required, and an empty network name elsewhere is refused", async (t) => {
    const { ask } = await testPlatform(t);
    const nameless = await ask("POST /v1/apps", { body: { app_name: "" } });
    assert.deepEqual([nameless.status, nameless.body.status], [422, "invalid_name"], nameless.text);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    assert.equal((await ask("POST /v1/apps/web/volumes", { body: { name: "" } })).status, 400);
    assert.equal((await ask("POST /v1/apps/web/machines", { body: { config: { image: "" } } })).status, 400);
    assert.equal((await ask("POST /v1/apps/web/ip_assignments", { body: { type: "" } })).status, 400);
    assert.equal((await ask("POST /v1/apps", { body: { app_name: "other", network: "No Slug" } })).status, 422);
    // An empty value is a value.
    assert.equal((await ask("POST /v1/apps/web/secrets", { body: { values: { EMPTY: "" } } })).status, 200);
    assert.equal((await ask("GET /v1/apps/web/secrets/EMPTY")).status, 200);
  });
});
