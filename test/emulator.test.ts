/** The emulator, as someone who tests their own program uses it. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { openControl } from "../src/testing/control.ts";
import { ClientError, type Emulator, type EmulatorOptions, startPlatform } from "../src/testing/index.ts";
import { until } from "./support.ts";

async function start(t: TestContext, options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await startPlatform({ frozen: true, ...options });
  t.after(() => emulator.close());
  await emulator.client.call("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
  return emulator;
}

const web = { app_name: "web" };
const machinesOf = ({ client }: Emulator) => client.call("GET /v1/apps/:app_name/machines", { params: web, query: {} });
const launch = ({ client }: Emulator, env: Record<string, string> = {}, more: object = {}) =>
  client.call("POST /v1/apps/:app_name/machines", { params: web, body: { config: { image: "any", env, ...more } } });
const stateOf = async (emulator: Emulator, id: string) =>
  (await machinesOf(emulator)).find((machine) => machine.id === id)?.state;

suite("emulator", () => {
  test("the clock is advanced by hand: a slow boot, an exit and an expired lease follow", async (t) => {
    const emulator = await start(t, { time: new Date("2030-01-01T00:00:00Z") });
    const { id } = await launch(emulator, { SIM_BOOT_MS: "30000", SIM_RUN_MS: "3600000", SIM_EXIT_CODE: "3" });
    await emulator.clock.advance("29s");
    assert.equal(await stateOf(emulator, id), "starting");
    await emulator.clock.advance("1s");
    assert.equal(await stateOf(emulator, id), "started");
    const params = { ...web, machine_id: id };
    await emulator.client.call("POST /v1/apps/:app_name/machines/:machine_id/lease", {
      params,
      query: {},
      body: { ttl: 60 },
    });
    const stop = () => emulator.client.call("POST /v1/apps/:app_name/machines/:machine_id/stop", { params, body: {} });
    await assert.rejects(stop(), (thrown) => thrown instanceof ClientError && thrown.http === 409);
    await emulator.clock.advance("61s");
    await stop();
    await emulator.clock.advance(0);
    assert.equal(await stateOf(emulator, id), "stopped");
    assert.equal(new Date(emulator.clock.now()).toISOString(), "2030-01-01T00:01:31.000Z");
  });

  test("reset restores the initial state, and the token stays valid", async (t) => {
    const emulator = await start(t, { time: new Date("2030-01-01T00:00:00Z") });
    await launch(emulator);
    const { base_url, token } = emulator;
    emulator.faults.add({ route: "*", fail: "overloaded", times: Number.POSITIVE_INFINITY });
    await emulator.clock.advance("2h");
    await emulator.reset();
    assert.deepEqual([emulator.base_url, emulator.token], [base_url, token]);
    assert.equal((await emulator.client.call("GET /v1/apps", { query: {} })).apps.length, 0);
    assert.equal(new Date(emulator.clock.now()).toISOString(), "2030-01-01T00:00:00.000Z");
  });

  test("a saved state is loaded elsewhere with its running machines, secrets and tokens", async (t) => {
    const emulator = await start(t);
    const { id } = await launch(emulator);
    await emulator.client.call("POST /v1/apps/:app_name/secrets", { params: web, body: { values: { KEY: "1" } } });
    await emulator.clock.advance("1h");
    const state = await emulator.save();
    const other = await startPlatform({ state, frozen: true });
    t.after(() => other.close());
    assert.equal(other.token, emulator.token);
    const secretsOf = ({ client }: Emulator) => client.call("GET /v1/apps/:app_name/secrets", { params: web });
    assert.deepEqual(await secretsOf(other), await secretsOf(emulator));
    assert.equal((await secretsOf(other)).secrets.length, 1);
    assert.notEqual(other.base_url, emulator.base_url);
    assert.equal(await stateOf(other, id), "started");
    assert.ok(other.clock.now() >= emulator.clock.now());
    // What does not fit is refused, and what was there stays.
    await assert.rejects(other.load(new TextEncoder().encode("nonsense")), /cannot be read as a backup/);
    assert.equal(await stateOf(other, id), "started");
  });

  test("injected request faults refuse, delay and cut off requests, before and after the work", async (t) => {
    const emulator = await start(t);
    const { client, faults, clock } = emulator;
    const route = "POST /v1/apps/:app_name/machines";
    const once = faults.add({ route, fail: "rate_limited" });
    await assert.rejects(launch(emulator), (thrown) => thrown instanceof ClientError && thrown.http === 429);
    assert.equal(once.happened, 1);

    faults.add({ route, params: { app_name: "other" }, fail: "internal" });
    await launch(emulator);
    faults.clear();

    for (const [hang_up, machines] of [
      ["before", 1],
      ["after", 2],
    ] as const) {
      faults.add({ route, hang_up });
      await assert.rejects(launch(emulator), (thrown) => thrown instanceof ClientError && thrown.http === 0);
      assert.equal((await machinesOf(emulator)).length, machines);
    }

    faults.add({ route: "GET /v1/apps", delay_ms: 5000 });
    let answered = false;
    const slow = client.call("GET /v1/apps", { query: {} }).then(() => {
      answered = true;
    });
    await until("the request is held up", () => faults.list().length === 0);
    assert.equal(answered, false);
    await clock.advance(5000);
    await slow;
  });

  test("injected host faults fail a start, and a crashed machine restarts by its policy", async (t) => {
    const emulator = await start(t);
    emulator.faults.add({ host: "start", fail: "no room on the disk" });
    const broken = await launch(emulator, {}, { restart: { policy: "no" } });
    await emulator.clock.advance("1m");
    const [found] = await machinesOf(emulator);
    assert.match(JSON.stringify(found?.events), /no room on the disk/);
    assert.notEqual(await stateOf(emulator, broken.id), "started");

    const { id } = await launch(emulator, {}, { restart: { policy: "always" } });
    await emulator.clock.advance(0);
    assert.equal(emulator.crash(id, { exit_code: 9, oom_killed: true }), true);
    await emulator.clock.advance("1m");
    const machine = (await machinesOf(emulator)).find((one) => one.id === id);
    assert.equal(machine?.state, "started");
    assert.match(JSON.stringify(machine?.events), /"oom_killed":true/);
    assert.equal(emulator.crash("none"), false);
  });

  test("a running clock advances by itself, and several emulators are independent", async (t) => {
    const listeners = process.listenerCount("exit");
    const [one, two] = await Promise.all([start(t, { frozen: false }), startPlatform()]);
    assert.equal(process.listenerCount("exit"), listeners, "any number of them can run");
    t.after(() => two.close());
    const { id } = await launch(one, { SIM_BOOT_MS: "20" });
    await one.client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", {
      params: { ...web, machine_id: id },
      query: {},
    });
    assert.equal(await stateOf(one, id), "started");
    assert.equal((await two.client.call("GET /v1/apps", { query: {} })).apps.length, 0);
    await assert.rejects(
      two.client.call("GET /v1/apps/:app_name", { params: web }),
      (thrown) => thrown instanceof ClientError && thrown.http === 404,
    );
  });

  test("settings are read as from the config file, and an invalid one is named", async (t) => {
    const config =
      'rate_limit = 2\n[[hosts]]\nid = "aaaa"\nregion = "north"\n[[hosts]]\nid = "bbbb"\nregion = "south"\n';
    const emulator = await start(t, { config });
    const { regions } = await emulator.client.call("GET /v1/platform/regions", {});
    assert.deepEqual(regions.map(({ code }) => code).sort(), ["north", "south"]);
    await assert.rejects(emulator.client.call("GET /v1/apps", { query: {} }), /rate/);
    await assert.rejects(startPlatform({ config: "listen = 5 = 6" }), /config file/);
    await assert.rejects(emulator.clock.advance("soon"), /1h30m, not soon/);
  });

  test("the emulator is controlled over HTTP with its token", async (t) => {
    const emulator = await start(t, { time: new Date("2030-01-01T00:00:00Z") });
    const control = await openControl(emulator, { host: "127.0.0.1", port: 0 });
    t.after(() => control.close());
    const ask = async (target: string, body?: string | Uint8Array<ArrayBuffer>, token = emulator.token) => {
      const [method = "", path = ""] = target.split(" ");
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${control.url}${path}`, { method, headers, ...(body ? { body } : {}) });
      return { status: answer.status, bytes: new Uint8Array(await answer.arrayBuffer()) };
    };
    const text = async (...asked: Parameters<typeof ask>) => Buffer.from((await ask(...asked)).bytes).toString();
    assert.equal((await ask("GET /clock", undefined, "wrong")).status, 401);
    const { id } = await launch(emulator);
    const { bytes } = await ask("GET /state");
    assert.match(await text("POST /clock", '{"advance": "1h"}'), /"2030-01-01T01:00:00.000Z","frozen":true/);
    assert.match(await text("POST /faults", '{"route": "GET /v1/apps", "fail": "overloaded"}'), /"happened":0/);
    assert.match(await text("POST /faults", '{"times": 2}'), /a fault has a route/);
    assert.equal(await text("DELETE /faults"), "[]\n");
    assert.equal(await text(`POST /machines/${id}/crash`, '{"exit_code": 3}'), '{"crashed":true}\n');
    await ask("POST /reset");
    assert.equal((await emulator.client.call("GET /v1/apps", { query: {} })).apps.length, 0);
    await ask("PUT /state", bytes);
    await emulator.clock.advance(0);
    assert.equal(await stateOf(emulator, id), "started");
    assert.equal((await ask("PUT /state", "nonsense")).status, 400);
    assert.match(await text("GET /nothing"), /the emulator has GET \/clock/);
  });
});
