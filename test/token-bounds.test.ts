/** One token cannot use up what all share: connections, event streams. */
import assert from "node:assert/strict";
import { Agent, get, type IncomingMessage } from "node:http";
import { suite, type TestContext, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

interface Reply {
  status: number;
  text: string;
  /** Leaves. */
  leave(): void;
}

/** Asks over a connection of its own, and reads as far as the first bytes of the body. */
function client(t: TestContext, { base_url }: TestPlatform) {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  t.after(() => agent.destroy());
  return async (path: string, token: string, accept = "application/json"): Promise<Reply> => {
    const headers = { authorization: `Bearer ${token}`, accept };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${base_url}${path}`, { agent, headers }, resolve).on("error", reject);
    });
    const text = await new Promise<string>((resolve) =>
      response.once("data", (chunk: Buffer) => resolve(String(chunk))),
    );
    return { status: response.statusCode ?? 0, text, leave: () => void response.destroy() };
  };
}

const many = (count: number, one: () => Promise<Reply>): Promise<Reply[]> =>
  Promise.all(Array.from({ length: count }, one));
const statuses = (replies: readonly Reply[]): number[] => [...new Set(replies.map(({ status }) => status))];

async function orgTokens(platform: TestPlatform): Promise<[string, string]> {
  const make = async (): Promise<string> =>
    (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token;
  return [await make(), await make()];
}

suite("limits per token", () => {
  test("a stream over the limit is 429 with the limit's name, others are served, and an ended one makes room", async (t) => {
    const platform = await testPlatform(t);
    const [greedy, modest] = await orgTokens(platform);
    const ask = client(t, platform);
    const stream = (token: string) => ask("/v1/orgs/personal/events", token, "text/event-stream");
    const open = await many(LIMITS.streams_per_token, () => stream(greedy));
    assert.deepEqual(statuses(open), [200]);
    const refused = await stream(greedy);
    assert.deepEqual([refused.status, JSON.parse(refused.text).status], [429, "rate_limited"]);
    assert.match(refused.text, /256 streams open already \(limit streams_per_token\)/);
    assert.equal((await ask("/v1/apps?org_slug=personal", greedy)).status, 200, "other requests are served");
    assert.deepEqual(statuses([await stream(modest), await stream(platform.token)]), [200]);
    open[0]?.leave();
    await until("there is room again", async () => (await stream(greedy)).status === 200);
    assert.deepEqual(statuses(await many(LIMITS.streams_per_token + 10, () => stream(platform.token))), [200]);
  });

  test("a connection over the limit is 429 and closed, and others are served", async (t) => {
    const platform = await testPlatform(t);
    const [greedy, modest] = await orgTokens(platform);
    const { body } = await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    assert.ok(body);
    const machine = (
      await platform.ask("POST /v1/apps/web/machines", { body: { config: { image: "web:1" }, skip_launch: true } })
    ).body.id;
    const ask = client(t, platform);
    const waits = `/v1/apps/web/machines/${machine}/wait?state=started&timeout=60`;
    const held = Array.from({ length: LIMITS.connections_per_token + 1 }, () => ask(waits, greedy));
    // All but one wait for the machine.
    const refused = await Promise.race(held);
    assert.equal(refused.status, 429);
    assert.match(refused.text, /1024 connections open already \(limit connections_per_token\)/);
    assert.deepEqual(statuses([await ask("/v1/apps?org_slug=personal", modest)]), [200]);
    assert.deepEqual(statuses([await ask("/v1/apps", platform.token)]), [200]);
    await platform.ask(`POST /v1/apps/web/machines/${machine}/start`);
    const answered = (await Promise.all(held)).map(({ status }) => status);
    assert.deepEqual(
      [answered.filter((one) => one === 429).length, answered.filter((one) => one === 200).length],
      [1, 1024],
    );
  });
});
