/** `hangar proxy`: connections to private ports of machines, over WebSocket, with the rules of every other request. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { portsOf } from "#cli/proxy/port.ts";
import { openLocalPort } from "#cli/proxy/tunnel.ts";
import type { Context } from "#cli/verb.ts";
import { Client, ClientError } from "#client/client.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { PlatformOptions } from "../src/platform.ts";
import { bench, IMAGE } from "./machine-bench.ts";
import { until } from "./support.ts";

const PORT = 7000;
const CONFIG = { image: IMAGE, env: { SIM_LISTEN: String(PORT) } };

async function opened(t: TestContext, options: PlatformOptions = {}) {
  const house = await bench(t, {}, options);
  const { id } = (await house.create({ config: CONFIG })).body as { id: string };
  await house.wait(id, "started");
  const said: string[] = [];
  const proxy = async (wanted: { token?: string; port?: number; machine_id?: string } = {}) => {
    const client = new Client({ base_url: house.base_url, token: wanted.token ?? house.token });
    const context = { client, say: (line: string) => void said.push(line) } as unknown as Context;
    const { port = PORT, machine_id } = wanted;
    const local = await openLocalPort(context, {
      app_name: "web",
      machine_id,
      port,
      listen: { host: "127.0.0.1", port: 0 },
    });
    t.after(() => local.close());
    return local;
  };
  return { ...house, id, proxy, said };
}

const dial = async ({ port }: { port: number }): Promise<Socket> => {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  return socket.on("error", () => {});
};

/** Sends a line and waits until it has come back. */
async function echoed(socket: Socket, line = "ping"): Promise<void> {
  socket.write(line);
  const [back] = (await once(socket, "data")) as [Buffer];
  assert.equal(back.toString(), line);
}

const statusOf = async (work: Promise<unknown>): Promise<string | undefined> => {
  const thrown = await work.then(
    () => assert.fail("it was not refused"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ClientError, String(thrown));
  return thrown.body.status;
};

suite("tunnels", () => {
  test("bytes go both ways, many connections at once, and what was sent before a half-close arrives", async (t) => {
    const { proxy, id } = await opened(t);
    const local = await proxy();
    assert.equal(local.machine_id(), id);
    const all = Array.from({ length: 8 }, async () => {
      const sent = randomBytes(1_000_000);
      const socket = await dial(local);
      socket.end(sent);
      assert.ok((await buffer(socket)).equals(sent));
    });
    await Promise.all(all);
  });

  test("refusals have clear errors: a closed port, a reader's token, an app without a started machine", async (t) => {
    const { proxy, ask, on, wait, id } = await opened(t);
    assert.equal(await statusOf(proxy({ port: 81 })), "port_unreachable");
    const { token: reader } = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } })).body;
    assert.equal(await statusOf(proxy({ token: reader })), "forbidden");
    assert.equal((await on(`GET ${id}/tunnel?port=${PORT}`)).body.status, "upgrade_required");
    assert.equal((await on(`GET ${id}/tunnel?port=70000`)).body.status, "invalid_request");
    assert.equal((await on(`GET ${id}/tunnel`)).body.status, "invalid_request");
    await on(`POST ${id}/stop`);
    await wait(id, "settled");
    assert.equal(await statusOf(proxy()), "wrong_state");
    assert.equal(await statusOf(proxy({ machine_id: id })), "wrong_state");
  });

  test("a revoked token ends open connections, and opens no more", async (t) => {
    const { proxy, ask, said } = await opened(t);
    const { token, id } = (await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const local = await proxy({ token });
    const socket = await dial(local);
    await echoed(socket);
    await ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    assert.equal(await text(socket), "", "it ends");
    await until("the reason is printed", () => said.some((line) => /connection lost:.*revoked/.test(line)));
    assert.equal(await text(await dial(local)), "");
    await until("the refusal is printed", () => said.some((line) => /connection refused:/.test(line)));
  });

  test("connections end with the machine, and new ones go to another that runs", async (t) => {
    const { proxy, create, on, wait } = await opened(t);
    const local = await proxy();
    const first = local.machine_id();
    const socket = await dial(local);
    await echoed(socket);
    const { id: second } = (await create({ config: CONFIG })).body as { id: string };
    await wait(second, "started");
    await on(`POST ${first}/suspend`);
    assert.equal(await text(socket), "");
    await wait(first, "settled");
    const again = await dial(local);
    await echoed(again);
    assert.equal(local.machine_id(), second);
    again.destroy();
  });

  test("a machine has so many tunnels and no more; one that is closed makes room", async (t) => {
    const { proxy, id, on } = await opened(t);
    const local = await proxy();
    const all: Socket[] = [];
    for (let n = 0; n < MACHINE_LIMITS.tunnels_per_machine; n++) {
      const socket = await dial(local);
      await echoed(socket);
      all.push(socket);
    }
    const refused = (await on(`GET ${id}/tunnel?port=${PORT}`)).body;
    assert.match(refused.error, /limit tunnels_per_machine/);
    all[0]?.destroy();
    await until("there is room again", async () => {
      const { status } = (await on(`GET ${id}/tunnel?port=${PORT}`)).body;
      return status === "upgrade_required";
    });
    for (const socket of all) socket.destroy();
  });

  test("an idle tunnel ends, and says why", async (t) => {
    const clock = new MovingClock({});
    const { proxy, said } = await opened(t, { clock });
    const socket = await dial(await proxy());
    await echoed(socket);
    await clock.advance(MACHINE_LIMITS.tunnel_idle_ms + 1);
    assert.equal(await text(socket), "");
    await until("the reason is printed", () => said.some((line) => /tunnel_idle_ms/.test(line)));
  });

  test("PORT, LOCAL:REMOTE and a free local port are read; anything else is a mistake", () => {
    assert.deepEqual(portsOf("5432"), { local: 5432, remote: 5432 });
    assert.deepEqual(portsOf("15432:5432"), { local: 15_432, remote: 5432 });
    assert.deepEqual(portsOf("0:5432"), { local: 0, remote: 5432 });
    for (const wrong of ["", "x", "0", "70000", "1:0", "1:2:3", "-1"]) assert.throws(() => portsOf(wrong), /not PORT/);
  });
});
