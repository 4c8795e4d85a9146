/** Tunnels and listening ports of sprites against the simulated driver, which sends back what comes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { type PortWatcher, SpritesClient } from "@fly/sprites";
import { WebSocket } from "ws";
import { SPRITE_LIMITS } from "#sprites/limits.ts";
import { testPlatform } from "./platform.ts";
import { until } from "./support.ts";

async function open(t: TestContext) {
  const platform = await testPlatform(t);
  const { base_url, token } = platform;
  const client = new SpritesClient(token, { baseURL: base_url });
  const sprite = await client.createSprite("one", { environment: { SIM_LISTEN: "7000" } });
  return { ...platform, sprite };
}

suite("ports of sprites", () => {
  test("a tunnel carries bytes both ways until its client leaves", async (t) => {
    const { sprite } = await open(t);
    const session = await sprite.proxyPort(0, 7000);
    t.after(() => session.close());
    const port = Number(session.localAddr()?.split(":").at(-1));
    const socket = connect(port, "localhost");
    socket.write("hello");
    const [echo] = (await once(socket, "data")) as [Buffer];
    assert.equal(String(echo), "hello");
    socket.end();
    await once(socket, "close");
  });

  test("a port where nothing listens, another host and no port are refused with a reason", async (t) => {
    const { base_url, token } = await open(t);
    for (const [first, reason] of [
      [{ host: "localhost", port: 7001 }, /nothing listens on port 7001/],
      [{ host: "example.com", port: 80 }, /host is the sprite itself/],
      [{ host: "localhost", port: 70_000 }, /port is a number from 1 to 65535/],
      [{ host: "localhost" }, /port is a number/],
    ] as const) {
      const socket = new WebSocket(`${base_url.replace("http", "ws")}/v1/sprites/one/proxy`, {
        headers: { authorization: `Bearer ${token}` },
      });
      socket.once("open", () => socket.send(JSON.stringify(first)));
      const [text] = (await once(socket, "message")) as [Buffer];
      const { status, error } = JSON.parse(text.toString());
      assert.equal(status, "error");
      assert.match(error, reason);
      await once(socket, "close");
    }
  });

  test("more watches than the limit are refused, until one ends", async (t) => {
    const { sprite, base_url, token } = await open(t);
    const watchers: PortWatcher[] = [];
    for (let n = 0; n < SPRITE_LIMITS.sprite_watches; n++) watchers.push(await sprite.watchPorts());
    t.after(() => {
      for (const one of watchers) one.close();
    });
    const url = `${base_url.replace("http", "ws")}/v1/sprites/one/fs/watch`;
    const refused = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    refused.on("error", () => {});
    const [, response] = (await once(refused, "unexpected-response")) as [unknown, { statusCode: number }];
    assert.equal(response.statusCode, 422);
    watchers[0]?.close();
    const again = async () => {
      const watcher = await sprite.watchPorts();
      watcher.close();
      return true;
    };
    await until("one more is allowed", () => again().catch(() => false));
  });

  test("a watch begins with the ports that are open", async (t) => {
    const { sprite, ask } = await open(t);
    const watcher = await sprite.watchPorts();
    t.after(() => watcher.close());
    const ports = [{ type: "port_opened", port: 7000, address: "0.0.0.0", pid: 1 }];
    assert.deepEqual(await watcher.next(), { type: "port_list", ports });
    assert.equal((await ask("GET /v1/sprites/one/ports/watch")).status, 426);
    assert.equal((await ask("GET /v1/sprites/one/proxy")).status, 426);
  });
});
