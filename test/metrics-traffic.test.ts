/** Real requests through the edge proxy, and what the query API says about them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { VirtualClock } from "#core/fixtures.ts";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { clockHere, rounds } from "./measured.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

const SIZE = 5000;

interface Rig {
  platform: TestPlatform;
  port: number;
  machine: { id: string; instance_id: string };
  /** Tells the metrics what was counted, once the counter has this value. */
  settle(name: string, value: number): Promise<void>;
  value(query: string): Promise<number>;
}

/** An app with an address and one machine, in whose place a server of the test's answers. */
async function harness(t: TestContext, listener: RequestListener, upgrade?: (socket: Socket) => void): Promise<Rig> {
  const backend = await aBackend(t, listener);
  if (upgrade) backend.server.on("upgrade", (_request, socket) => upgrade(socket as Socket));
  const clock = clockHere();
  const port = await freePort();
  const reach = () => ({ host: "127.0.0.1", port: backend.port });
  const platform = await testPlatform(t, { HANGAR_PROXY_WORKERS: "2" }, { clock, reach });
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  const concurrency = { type: "requests", soft_limit: 20 };
  const services = [{ protocol: "tcp", internal_port: 8080, concurrency, ports: [{ port, handlers: ["http"] }] }];
  const { body } = await platform.ask("POST /v1/apps/web/machines", {
    body: { config: { image: "web:1", services } },
  });
  await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
  await until("the listener is open", () => opens(port));
  return {
    platform,
    port,
    machine: body,
    settle: (name, value) => settle(platform, clock, name, value),
    async value(query) {
      const path = `/prometheus/personal/api/v1/query?query=${encodeURIComponent(query)}&time=${clock.now() / 1000}`;
      return Number((await platform.ask(`GET ${path}`)).body.data.result[0]?.value[1] ?? Number.NaN);
    },
  };
}

async function opens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const opened = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
}

async function settle(platform: TestPlatform, clock: VirtualClock, name: string, value: number): Promise<void> {
  const counted = (): number =>
    [...platform.proxySamples(clock.now())].reduce((sum, one) => sum + (one.name === name ? one.value : 0), 0);
  await until(`${name} is ${value}`, async () => counted() === value);
  await rounds(platform, clock, 1);
}

suite("traffic metrics", () => {
  test("requests are counted for the app at the edge and for the machine that served them", async (t) => {
    const teapot: RequestListener = (_request, response) => response.writeHead(418).end(Buffer.alloc(SIZE));
    const { port, platform, machine, settle, value } = await harness(t, teapot);
    const ask = async (): Promise<void> => {
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { host: "web.localhost" } });
      assert.equal((await response.arrayBuffer()).byteLength, SIZE);
    };
    for (let i = 0; i < 7; i++) await ask();
    await settle("svc_app_http_responses_count", 7);
    const edge = 'app="web",region="local",host="0001",proxy_id="blue"';
    const own = `${edge},instance="${machine.instance_id}"`;
    assert.equal(await value(`svc_edge_http_responses_count{${edge},instance="",status="418"}`), 7);
    assert.equal(await value(`svc_app_http_responses_count{${own},status="418"}`), 7);
    // A counter that is new was 0 before, so that what it counted first is not missing.
    assert.equal(await value("sum(increase(svc_edge_http_responses_count[1m]))"), 7);
    assert.equal(await value(`svc_edge_http_response_time_seconds_bucket{${edge},status="418",le="+Inf"}`), 7);
    assert.equal(await value(`svc_app_connect_time_seconds_count{${own}}`), await value("svc_app_tcp_connects_count"));
    const out = await value(`svc_edge_data_out{${edge}}`);
    assert.ok(out > 7 * SIZE && out < 7 * (SIZE + 1000), `${out} bytes went out`);
    assert.equal(await value(`svc_app_concurrency{${own}}`), 0);

    // A new version of the machine is another instance, and counts from nothing.
    const path = `/v1/apps/web/machines/${machine.id}`;
    const { config } = (await platform.ask(`GET ${path}`)).body;
    const updated = (await platform.ask(`POST ${path}`, { body: { config: { ...config, env: { V: "2" } } } })).body;
    await platform.ask(`GET ${path}/wait?state=started&instance_id=${updated.instance_id}`);
    let more = 0;
    const isTold = (): boolean =>
      [...platform.proxySamples(systemClock.now())].some(
        ({ name, labels }) => name === "svc_app_http_responses_count" && labels["instance"] === updated.instance_id,
      );
    await until("the new one answers", async () => {
      if ((await fetch(`http://127.0.0.1:${port}/`)).status === 418) more++;
      return isTold();
    });
    await settle("svc_app_http_responses_count", 7 + more);
    const [before, after] = [machine, updated].map(
      async ({ instance_id }) => await value(`svc_app_http_responses_count{status="418",instance="${instance_id}"}`),
    );
    assert.ok(((await before) ?? 0) >= 7);
    assert.equal(((await before) ?? 0) + ((await after) ?? 0), 7 + more);
  });

  test("bytes of an upgraded connection are counted, and its end", async (t) => {
    const { port, settle, value } = await harness(
      t,
      (_request, response) => response.end(),
      (socket) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
        socket.pipe(socket);
      },
    );
    const client = connect(port, "127.0.0.1");
    t.after(() => client.destroy());
    client.write("GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    let got = 0;
    client.on("data", (chunk: Buffer) => {
      got += chunk.length;
    });
    await until("it is upgraded", async () => got > 0);
    const head = got;
    client.write(Buffer.alloc(SIZE));
    await until("all came back", async () => got === head + SIZE);
    client.destroy();
    await settle("svc_edge_tcp_disconnects_count", 1);
    assert.equal(await value("svc_edge_tcp_connects_count"), 1);
    for (const name of ["svc_edge_data_in", "svc_edge_data_out"])
      assert.ok((await value(name)) > SIZE && (await value(name)) < SIZE + 1000, name);
  });
});
