import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { suite, test } from "node:test";
import { ClientError } from "./client.ts";
import { clientOf } from "./fixtures.ts";
import { waitForMachine } from "./wait.ts";

const place = { app_name: "web", machine_id: "1781949c61e789" };

/** A machine that is in the last state once `waits` were answered with 408. */
function machine(waits: number, state: string, events: object[] = []) {
  const asked: URLSearchParams[] = [];
  const answer: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://x");
    const json = (http: number, body: object) =>
      response.writeHead(http, { "content-type": "application/json" }).end(JSON.stringify(body));
    const reached = asked.length > waits;
    if (!pathname.endsWith("/wait"))
      return json(200, {
        id: place.machine_id,
        instance_id: `v${asked.length}`,
        state: reached ? state : "starting",
        events,
      });
    asked.push(searchParams);
    return asked.length > waits ? json(200, { ok: true }) : json(408, { error: "not yet", status: "wait_timeout" });
  };
  return { asked, answer };
}

suite("waitForMachine", () => {
  test("asks until the state is reached, each time about the version that the machine has then", async (t) => {
    const { asked, answer } = machine(2, "started");
    const found = await waitForMachine(await clientOf(t, answer), place, ["started", "stopped"]);
    assert.equal(found.state, "started");
    assert.deepEqual(
      asked.map((query) => [query.getAll("state"), query.get("instance_id"), query.get("timeout")]),
      ["v0", "v1", "v2"].map((version) => [["started", "stopped", "failed"], version, "60"]),
    );
  });

  test("fails with the machine's reason, unless that state was waited for", async (t) => {
    const { answer } = machine(0, "failed", [{ request: { error: "no such image" } }]);
    const client = await clientOf(t, answer);
    await assert.rejects(waitForMachine(client, place, ["started"]), {
      http: 500,
      message: "machine 1781949c61e789 failed: no such image",
    });
    for (const state of ["failed", "settled"])
      assert.equal((await waitForMachine(client, place, [state])).state, "failed");
  });

  test("gives up after its timeout, and when its signal aborts", { timeout: 20_000 }, async (t) => {
    const silent = await clientOf(t, () => {});
    await assert.rejects(waitForMachine(silent, place, ["started"], { timeout_s: 0.05 }), {
      http: 408,
      message: "1781949c61e789 is not started after 0.05 s",
    });
    const ended = waitForMachine(silent, place, ["started"], { signal: AbortSignal.timeout(50) });
    await assert.rejects(ended, (thrown) => thrown instanceof ClientError && thrown.http === 0);
  });

  test("an error of the platform is thrown as it is", async (t) => {
    const client = await clientOf(t, (_, response) => {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":"machine not found"}');
    });
    await assert.rejects(waitForMachine(client, place, ["started"]), { http: 404, message: "machine not found" });
  });
});
