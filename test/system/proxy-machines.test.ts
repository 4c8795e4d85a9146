/** The edge proxy in front of real machines: waking them, replacing them, files of their image, their names. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs, tempDir } from "../support.ts";
import { until } from "./edge-proxy-harness.ts";
import { nodeIdOf } from "./leaks.ts";
import { load } from "./load.ts";

suite("edge proxy with real machines", { skip: realMachinesMissing() }, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  let platform: TestPlatform;
  let port: number;

  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
    port = await freePort();
    await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  const configOf = (service: object, more: object = {}): object => ({
    image: "hangar/hello",
    guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
    services: [
      {
        protocol: "tcp",
        internal_port: 8080,
        concurrency: { type: "requests", soft_limit: 100 },
        ports: [{ port, handlers: ["http"] }],
        ...service,
      },
    ],
    ...more,
  });

  const get = async (path = "/"): Promise<Response> => await fetch(`http://127.0.0.1:${port}${path}`);
  const serves = async (): Promise<boolean> =>
    await get().then(
      async (answer) => (await answer.text()) !== "" && answer.ok,
      () => false,
    );

  /** A machine that answers requests; removed with the test. */
  async function machine(t: { after(end: () => unknown): void }, config: object): Promise<string> {
    const { status, body, text } = await platform.ask("POST /v1/apps/web/machines", { body: { config } });
    assert.equal(status, 200, text);
    t.after(() => platform.ask(`DELETE /v1/apps/web/machines/${body.id}?force=true`));
    await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
    return body.id as string;
  }

  test("the first machine is reported as started when it can be reached", async (t) => {
    await machine(t, configOf({}));
    const answer = await get();
    assert.deepEqual([answer.status, (await answer.text()) !== ""], [200, true]);
  });

  test("the first request resumes a suspended machine", async (t) => {
    const id = await machine(t, configOf({ autostart: true }));
    await until(serves);
    const times: number[] = [];
    for (let i = 0; i < runs(2, 10); i++) {
      await platform.ask(`POST /v1/apps/web/machines/${id}/suspend`);
      const { state } = (await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=settled`)).body;
      assert.equal(state, "suspended");
      const began = performance.now();
      const answer = await get();
      const reader = answer.body?.getReader();
      await reader?.read();
      times.push(performance.now() - began);
      assert.equal(answer.status, 200);
      await reader?.cancel();
    }
    t.diagnostic(`from suspend to first byte: ${times.map((ms) => `${ms.toFixed(0)} ms`).join(", ")} (target 400 ms)`);
  });

  test("both machines are replaced under load, and no request fails", async (t) => {
    const config = configOf({});
    const ids = [await machine(t, config), await machine(t, config)];
    await until(serves);
    const clients = load(t, port, 16);
    for (let i = 0; i < runs(1, 5); i++) {
      for (const id of ids) {
        const changed = configOf({}, { env: { ROUND: String(i) } });
        const { body, text } = await platform.ask(`POST /v1/apps/web/machines/${id}`, { body: { config: changed } });
        assert.ok(body.instance_id, text);
        const wait = `GET /v1/apps/web/machines/${id}/wait?state=started&instance_id=${body.instance_id}`;
        assert.equal((await platform.ask(wait)).status, 200);
        const before = clients.count;
        await until(async () => clients.count > before + 100);
      }
    }
    await clients.end();
    assert.deepEqual(clients.failures, []);
    t.diagnostic(`${clients.count} requests, none failed`);
  });

  test("static files of the image are served without the machine; other paths reach it", async (t) => {
    const server = readFileSync(join(import.meta.dirname, "../../src/drivers/images/hello-server.mjs"), "utf8");
    const id = await machine(t, configOf({}, { statics: [{ guest_path: "/", url_prefix: "/image" }] }));
    await until(serves);
    const path = "/image/hello/server.mjs";
    await until(async () => (await get(path)).headers.get("etag") !== null);
    const answer = await get(path);
    assert.deepEqual([answer.status, await answer.text()], [200, server]);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/javascript/);
    assert.match(await (await get("/image/etc/nothing")).text(), /path +\/image\/etc\/nothing/);
    await platform.ask(`POST /v1/apps/web/machines/${id}/stop`);
    await until(async () => !(await serves()));
    assert.equal(await (await get(path)).text(), server);
  });

  test("machines find each other by DNS name", async (t) => {
    const [one, two] = [await machine(t, configOf({})), await machine(t, configOf({}))];
    const ask = async (name: string): Promise<string[]> => {
      const script = `require("dns").promises.resolve6(${JSON.stringify(name)}).then((all) => console.log(JSON.stringify(all.sort())), () => console.log("[]"))`;
      const body = { command: ["/usr/bin/node", "-e", script], timeout: 20 };
      const answer = (await platform.ask(`POST /v1/apps/web/machines/${one}/exec`, { body })).body;
      return JSON.parse(String(answer.stdout)) as string[];
    };
    const ipOf = async (id: string): Promise<string> =>
      (await platform.ask(`GET /v1/apps/web/machines/${id}`)).body.private_ip as string;
    const both = [await ipOf(one), await ipOf(two)].sort();
    await until(async () => (await ask("web.internal")).length === 2);
    const short = (ip: string): string => new URL(`http://[${ip}]`).hostname;
    assert.deepEqual((await ask("web.internal")).map(short), both.map(short));
    assert.deepEqual((await ask(`${two}.vm.web.internal`)).map(short), [short(await ipOf(two))]);
    assert.deepEqual(await ask("nobody.internal"), []);
  });
});
