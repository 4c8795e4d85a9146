/** The edge proxy of a whole platform: machines of the sim driver, with real servers in their place on loopback. */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { suite, type TestContext, test } from "node:test";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until as patient } from "./support.ts";

interface Rig {
  platform: TestPlatform;
  /** Creates a machine whose port 8080 is a server of the test's. */
  machine(service: object, more?: object): Promise<string>;
  get(path?: string, host?: string): Promise<Response>;
  /** Resolves when the app answers on its port. */
  served(): Promise<void>;
  until(what: () => Promise<boolean>): Promise<void>;
}

/** Whatever is asked of machine port 8080 is answered by `listener`, while the machine runs. */
async function harness(t: TestContext, listener: RequestListener, env: Record<string, string> = {}): Promise<Rig> {
  const backend = await aBackend(t, listener);
  const port = await freePort();
  const platform = await testPlatform(
    t,
    { HANGAR_PROXY_WORKERS: "2", ...env },
    { reach: () => ({ host: "127.0.0.1", port: backend.port }) },
  );
  await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
  const until: Rig["until"] = async (what) => void (await patient(what.toString(), what));
  const get: Rig["get"] = (path = "/", host = "web.localhost") =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { host } });
  return {
    platform,
    get,
    until,
    served: () =>
      until(() =>
        get().then(
          ({ ok }) => ok,
          () => false,
        ),
      ),
    async machine(service, more = {}) {
      const config = {
        image: "web:1",
        services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port, handlers: ["http"] }], ...service }],
        ...more,
      };
      const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config } });
      await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
      return body.id as string;
    },
  };
}

suite("edge proxy of a platform", () => {
  test("an app is unreachable until it has an address, and again without one", async (t) => {
    const { platform, machine, get, served, until } = await harness(t, (_request, response) => response.end("hello"));
    await machine({});
    await assert.rejects(get());
    assert.deepEqual((await platform.ask("GET /v1/apps/web/services")).body, {
      open: false,
      services: [],
      statics: [],
    });
    const { status, body } = await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    assert.deepEqual([status, body.ip, body.shared], [200, "127.0.0.1", true]);
    await served();
    assert.equal(await (await get()).text(), "hello");
    const { body: view } = await platform.ask("GET /v1/apps/web/services");
    assert.equal(view.services[0].machines[0].serving, true);
    assert.equal((await platform.ask("DELETE /v1/apps/web/ip_assignments/127.0.0.1")).status, 204);
    await until(() =>
      get().then(
        () => false,
        () => true,
      ),
    );
  });

  test("the first port is open when its machine is reported as started", async (t) => {
    const { platform, machine, get } = await harness(t, (_request, response) => response.end("hello"));
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    await machine({});
    assert.equal(await (await get()).text(), "hello");
  });

  test("the first port opens when its address is assigned, and closes when that is removed", async (t) => {
    const { platform, machine, get } = await harness(t, (_request, response) => response.end("hello"));
    await machine({});
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    assert.equal(await (await get()).text(), "hello");
    await platform.ask("DELETE /v1/apps/web/ip_assignments/127.0.0.1");
    await assert.rejects(get());
  });

  test("a request starts a stopped machine, once, and the event says why", async (t) => {
    const { platform, machine, get, served } = await harness(t, (_request, response) => response.end("awake"));
    const id = await machine({ autostart: true });
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    await served();
    await platform.ask(`POST /v1/apps/web/machines/${id}/stop`);
    const { body: before } = await platform.ask(`GET /v1/apps/web/machines/${id}`);
    await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=stopped&instance_id=${before.instance_id}`);
    const answers = await Promise.all(Array.from({ length: 100 }, async () => await (await get()).text()));
    assert.deepEqual([...new Set(answers)], ["awake"]);
    const { body } = await platform.ask(`GET /v1/apps/web/machines/${id}`);
    const starts = body.events.filter(
      (event: { status: string; source: string }) => event.status === "starting" && event.source === "proxy",
    );
    assert.equal(starts.length, 1);
    assert.match(starts[0].request.reason, /no machine was running/);
  });

  test("without autostart a request to a stopped machine gets an error that says how to start it", async (t) => {
    const { platform, machine, get, until } = await harness(t, (_request, response) => response.end("awake"));
    const id = await machine({});
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    await platform.ask(`POST /v1/apps/web/machines/${id}/stop`);
    await until(async () => (await get()).status === 503);
    const answer = await get();
    assert.deepEqual([answer.headers.get("svc-reason"), answer.headers.get("retry-after")], ["no_machine", "1"]);
    const { error } = (await answer.json()) as { error: string };
    assert.match(error, /^web: its machine does not run, and autostart is off: `hangar machines start` starts one/);
    await platform.ask(`POST /v1/apps/web/machines/${id}/start`);
    await until(async () => (await get()).ok);
  });

  test("an idle machine is suspended, and one of min_machines_running is not", async (t) => {
    const { platform, machine, get, until } = await harness(t, (_request, response) => response.end("ok"), {
      HANGAR_AUTOSTOP_IDLE: "1",
    });
    const stops = { autostart: true, autostop: "suspend", min_machines_running: 1 };
    await Promise.all([machine(stops), machine(stops)]);
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    const states = async (): Promise<string[]> =>
      ((await platform.ask("GET /v1/apps/web/machines")).body as { state: string }[]).map(({ state }) => state).sort();
    await until(async () => (await states()).includes("suspended"));
    assert.deepEqual(await states(), ["started", "suspended"]);
    assert.equal(await (await get()).text(), "ok");
    const { body } = await platform.ask("GET /v1/apps/web/machines");
    const asleep = body.find(({ state }: { state: string }) => state === "suspended");
    assert.match(JSON.stringify(asleep.events), /no request or connection for \d+ s \(autostop suspend\)/);
  });

  test("new workers take over without a dropped request, and count under the other colour", async (t) => {
    const { platform, machine, get, served, until } = await harness(t, (_request, response) => response.end("ok"));
    await machine({});
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    await served();
    let asked = 0;
    let stop = false;
    const clients = Array.from({ length: 8 }, async () => {
      while (!stop) {
        const response = await get();
        assert.equal(await response.text(), "ok");
        asked++;
      }
    });
    const colours = new Set<string>();
    for (let i = 0; i < 2; i++) colours.add((await platform.ask("POST /v1/proxy/reload")).body.proxy_id as string);
    stop = true;
    await Promise.all(clients);
    assert.ok(asked > 20, `${asked} requests`);
    assert.deepEqual([...colours].sort(), ["blue", "green"]);
    await until(async () => {
      const samples = [...platform.proxySamples(0)].filter(({ name }) => name === "svc_edge_http_responses_count");
      return samples.reduce((sum, { value }) => sum + value, 0) >= asked;
    });
    const names = new Set([...platform.proxySamples(0)].map(({ name }) => name));
    for (const name of ["svc_app_concurrency", "svc_app_connect_time_seconds_bucket", "svc_edge_data_out"])
      assert.ok(names.has(name), name);
  });

  test("connections are counted while they carry a request, not while they are idle", async (t) => {
    const held: (() => void)[] = [];
    const { platform, machine, get, served, until } = await harness(t, (request, response) => {
      if (request.url !== "/held") response.end("ok");
      else held.push(() => response.end("ok"));
    });
    await machine({ concurrency: { type: "connections", hard_limit: 10 } });
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    await served();
    const sum = (name: string): number =>
      [...platform.proxySamples(0)].reduce((all, one) => (one.name === name ? all + one.value : all), 0);
    const asked = Array.from({ length: 3 }, () => get("/held"));
    await until(async () => held.length === 3);
    await until(async () => sum("svc_app_concurrency") === 3);
    for (const answer of held) answer();
    assert.deepEqual(await Promise.all(asked.map(async (answer) => (await answer).text())), ["ok", "ok", "ok"]);
    await until(async () => sum("svc_app_concurrency") === 0);
  });

  test("static files that cannot be served are left to the machine, and the services say why", async (t) => {
    const { platform, machine, get, until } = await harness(t, (_request, response) => response.end("machine"));
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    const statics = [
      { guest_path: "/public", url_prefix: "/image" },
      { guest_path: "/", url_prefix: "bucket", tigris_bucket: "files" },
      { guest_path: "/../other", url_prefix: "/up", tigris_bucket: "files" },
      { guest_path: "/", url_prefix: "/odd", tigris_bucket: "a/../b" },
    ];
    await machine({}, { statics });
    await until(() =>
      get("/image/x").then(
        async (answer) => (await answer.text()) === "machine",
        () => false,
      ),
    );
    for (const path of ["/bucket/x", "/up/x", "/odd/x"]) assert.equal(await (await get(path)).text(), "machine");
    const { body } = await platform.ask("GET /v1/apps/web/services");
    const told = (body.statics as { url_prefix: string; problem?: string }[]).map((one) => [
      one.url_prefix,
      one.problem,
    ]);
    assert.deepEqual(told, [
      ["/image", "the files of that image are not here; they come when the machine starts"],
      ["/bucket", "this platform serves no buckets (HANGAR_STATICS_URL is not set)"],
      ["/up", "a path in a bucket may not hold `..`"],
      ["/odd", "a/../b is not the name of a bucket"],
    ]);
  });
});
