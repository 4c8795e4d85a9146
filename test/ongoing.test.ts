/** What is being built and deployed, as the API lists and streams it. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Client } from "#client/client.ts";
import { testPlatform } from "./platform.ts";

type Message = { cursor: number } | { deployments: { app_name: string; version: number; progress: string | null }[] };

suite("builds and deploys of an organization", () => {
  test("the event stream has them beside the events of machines, and the lists agree", async (t) => {
    // Before the platform closes, which waits for streams.
    const ending = new AbortController();
    t.after(() => ending.abort());
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const client = new Client({ base_url: platform.base_url, token: platform.token });
    const input = { params: { org_slug: "personal" }, query: { ongoing: true, tail: 0 }, signal: ending.signal };
    const messages = client.stream<"GET /v1/orgs/:org_slug/events", Message>("GET /v1/orgs/:org_slug/events", input);
    const deploys = async (): Promise<unknown> => {
      for (;;) {
        const { value, done } = await messages.next();
        assert.ok(!done, "the stream goes on");
        if ("deployments" in value)
          return value.deployments.map(({ app_name, version, progress }) => [app_name, version, progress]);
      }
    };
    assert.deepEqual(await deploys(), []);
    const made = await platform.ask("POST /v1/apps/web/releases", { body: { definition: {}, image: "web:1" } });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(await deploys(), [["web", 1, null]]);
    const body = { status: "running", progress: "1 of 2 machines: updated web-1" };
    assert.equal((await platform.ask("POST /v1/apps/web/releases/1", { body })).status, 200);
    assert.deepEqual(await deploys(), [["web", 1, body.progress]]);
    const { deployments } = (await platform.ask("GET /v1/orgs/personal/deployments")).body;
    assert.deepEqual(
      deployments.map(({ app_name, status, progress }: Record<string, string>) => [app_name, status, progress]),
      [["web", "running", body.progress]],
    );
    await platform.ask("POST /v1/apps/web/releases/1", { body: { status: "complete" } });
    assert.deepEqual(await deploys(), []);

    const config = { image: "registry.example/web:1" };
    await platform.ask("POST /v1/apps/web/machines", { body: { name: "one", config } });
    let event = await messages.next();
    while (!event.done && !("cursor" in event.value)) event = await messages.next();
    assert.ok(!event.done, "events of machines come in the same stream");
    assert.deepEqual((await platform.ask("GET /v1/orgs/personal/builds?state=running&state=queued")).body, {
      builds: [],
    });
    assert.equal((await platform.ask("GET /v1/orgs/personal/builds?state=odd")).status, 400);
  });
});
