/** Requests as fly-python-sdk 0.3 makes them, and what its models need of the answers. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { flyPlatform } from "./fly-listener.ts";

/** `FlyMachine(...).model_dump(exclude_none=True)`. */
const MACHINE = {
  name: "Web",
  region: "local",
  config: {
    env: { COLOUR: "red" },
    image: "web:1",
    guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
    checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "10s" } },
  },
};

suite("fly-python-sdk's requests", () => {
  test("an app is made and listed, and a machine lives in it", async (t) => {
    const { flies, token } = await flyPlatform(t);
    const asks = (target: string, body?: unknown) => flies(target, { body, authorization: `Bearer ${token}` });
    const made = await asks("POST /v1/apps", { app_name: "web", org_slug: "personal" });
    assert.equal(made.status, 201);
    const { apps } = (await asks("GET /v1/apps?org_slug=personal")).body;
    assert.deepEqual([apps[0].name, apps[0].machine_count, apps[0].network], ["web", 0, "default"]);
    const { organization, status } = (await asks("GET /v1/apps/web")).body;
    assert.deepEqual([organization.name, organization.slug, status], ["personal", "personal", "pending"]);

    const machine = await asks("POST /v1/apps/web/machines", MACHINE);
    assert.equal(machine.status, 200, JSON.stringify(machine.body));
    const path = `/v1/apps/web/machines/${machine.body.id}`;
    assert.equal((await asks(`GET ${path}/wait?state=started`)).status, 200);
    const [listed] = (await asks("GET /v1/apps/web/machines")).body;
    for (const field of ["registry", "repository", "tag", "digest"])
      assert.equal(typeof listed.image_ref[field], "string", field);
    assert.ok(Date.parse(listed.created_at) > 0 && Date.parse(listed.updated_at) > 0);
    // Its model of an event has a time, and either no request or one with an exit event and a restart count.
    for (const { id, source, timestamp, type } of (await asks(`GET ${path}/events`)).body)
      assert.deepEqual(
        [typeof id, typeof source, typeof timestamp, typeof type],
        ["string", "string", "number", "string"],
      );

    assert.equal((await asks(`POST ${path}/stop`, {})).status, 200);
    assert.equal((await asks(`GET ${path}/wait?state=stopped`)).status, 200);
    assert.equal((await asks(`POST ${path}/start`, {})).status, 200);
    assert.equal((await asks(`GET ${path}/wait?state=started`)).status, 200);
    assert.equal((await asks(`DELETE ${path}`)).status, 409, "a started machine is not destroyed without force");
    assert.equal((await asks("DELETE /v1/apps/web")).status, 202);
  });
});
