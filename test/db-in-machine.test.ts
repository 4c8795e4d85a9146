/** A node of a replicated database in a machine: what it needs it finds at its own socket, and only what is its app's. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { type InMachine, inMachine } from "#replication/in-machine.ts";
import { inside } from "./inside.ts";
import { tempDir } from "./support.ts";

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
