/** Commands in sprites against the simulated driver. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { WebSocket } from "ws";
import { MovingClock } from "#core/moving-clock.ts";
import { SPRITE_LIMITS } from "#sprites/limits.ts";
import type { PlatformOptions } from "../src/platform.ts";
import { testPlatform } from "./platform.ts";
import { spriteCommandsSuite } from "./sprite-commands.ts";
import { until } from "./support.ts";

async function open(t: TestContext, options: PlatformOptions = {}) {
  const platform = await testPlatform(t, {}, options);
  const { base_url, token } = platform;
  const client = new SpritesClient(token, { baseURL: base_url });
  const sprite = await client.createSprite("one");
  return { ...platform, client, sprite };
}

spriteCommandsSuite("simulated", (t) => open(t));

type Work = (
  wait: typeof once,
  client: typeof SpritesClient,
  token: string,
  at: string,
) => Promise<[stdout: string, id: string]>;

suite("sprites: the page of the documentation", () => {
  test("its JavaScript works as it stands", async (t) => {
    const { base_url, token } = await testPlatform(t);
    const page = readFileSync(join(import.meta.dirname, "../docs/sprites.md"), "utf8");
    const [, code = ""] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
    const body = code.replace(/^import .*$/gm, "").replace('"http://127.0.0.1:4280"', "at");
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (...words: string[]) => Work;
    const work = new AsyncFunction("once", "SpritesClient", "token", "at", `${body}\nreturn [stdout, session.id];`);
    const [stdout, id] = await work(once, SpritesClient, token, base_url);
    assert.equal(stdout, "hello\n");
    assert.match(id, /^[0-9a-f]{12}$/);
  });
});

suite("sprites: access and sleep", () => {
  test("a command that writes nothing gets messages, since its client takes silence for a dead connection", async (t) => {
    const clock = new MovingClock();
    const { base_url, token } = await open(t, { clock });
    const url = `${base_url.replace("http", "ws")}/v1/sprites/one/exec?cmd=cat&stdin=true`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    t.after(() => socket.terminate());
    const seen: number[] = [];
    socket.on("message", (data: Buffer, binary) => binary && seen.push(data.length));
    await once(socket, "message");
    for (let n = 1; n <= 3; n++) {
      await clock.advance(SPRITE_LIMITS.command_keepalive_ms + 1);
      await until("an empty message came", () => seen.length >= n);
    }
    assert.ok(seen.every((length) => length === 0));
  });

  test("a revoked token ends its commands and connections", async (t) => {
    const platform = await open(t);
    const { ask, base_url, client } = platform;
    const made = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const guest = new SpritesClient(made.token, { baseURL: base_url }).sprite("one");
    const command = guest.spawn("sh", ["-c", "echo on; sleep 3600"], { detachable: true });
    await once(command.stdout, "data");
    await ask(`DELETE /v1/orgs/personal/tokens/${made.id}`);
    assert.notEqual(await command.wait(), 0);
    await until("the command has ended", async () => (await client.sprite("one").listSessions()).length === 0);
    await assert.rejects(guest.listSessions(), /status 401/);
  });

  test("a sprite that sleeps is woken by a command", async (t) => {
    const { ask, client, sprite } = await open(t);
    await sprite.execFile("true");
    const { machine_id, app_name } = (await ask("GET /v1/sprites/one")).body;
    const machine = `/v1/apps/${app_name}/machines/${machine_id}`;
    for (const [verb, status] of [
      ["suspend", "warm"],
      ["stop", "cold"],
    ] as const) {
      await ask(`POST ${machine}/${verb}`);
      await until(`it is ${status}`, async () => (await client.getSprite("one")).status === status);
      assert.equal((await sprite.execFile("echo", ["awake"])).stdout, "awake\n");
      assert.equal((await client.getSprite("one")).status, "running");
    }
  });

  test("what a request cannot mean is refused with what is allowed", async (t) => {
    const { ask } = await open(t);
    const bad = await ask("POST /v1/sprites/one/exec?cmd=true&dir=here&env=novalue&max_run_after_disconnect=soon");
    assert.deepEqual([bad.status, bad.body.error], [400, "invalid_request"]);
    assert.deepEqual(bad.body.details.map(({ path }: { path: string }) => path).sort(), [
      "dir",
      "env",
      "max_run_after_disconnect",
    ]);
    assert.equal((await ask("POST /v1/sprites/none/exec?cmd=true")).status, 404);
    assert.equal((await ask("GET /v1/sprites/one/control")).status, 426);
    assert.equal((await ask("GET /v1/sprites/one/exec/none")).status, 404);
  });
});
