/** The Machines API as a client sees it: every row of the specification's table, leases and waiting. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { bench, IMAGE } from "./machine-bench.ts";

suite("machines: the specification's table", () => {
  test("create returns the machine, it boots, and can be read", async (t) => {
    const { create, on, wait } = await bench(t);
    const { status, body } = await create({ name: "first", region: "local" });
    assert.equal(status, 200);
    assert.match(body.id, /^[0-9a-f]{14}$/);
    assert.match(body.instance_id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.deepEqual([body.name, body.state, body.region, body.host_status], ["first", "created", "local", "ok"]);
    assert.match(body.private_ip, /^fdaa(:[0-9a-f]{1,4}){7}$/);
    assert.deepEqual(body.config, { image: IMAGE, guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 } });
    assert.deepEqual(body.checks, {});
    assert.equal(body.nonce, undefined);
    assert.deepEqual(
      [body.image_ref.registry, body.image_ref.repository, body.image_ref.tag],
      ["registry.example", "web", "1"],
    );
    assert.match(body.image_ref.digest, /^sha256:[0-9a-f]{64}$/);
    const [launch] = body.events;
    assert.deepEqual([launch.type, launch.status, launch.source], ["launch", "created", "user"]);
    assert.equal((await on(`GET ${body.id}`)).status, 200);
    assert.deepEqual((await wait(body.id, "started")).body.ok, true);
    const after = (await on(`GET ${body.id}`)).body;
    assert.equal(after.state, "started");
    const told = after.events.map((event: { type: string; status: string }) => `${event.type}/${event.status}`);
    assert.deepEqual(told, ["start/started", "start/starting", "launch/created"]);
  });

  test("skip_launch creates a machine that stays stopped until it is started", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id } = (await create({ skip_launch: true, skip_service_registration: true })).body;
    const settled = await wait(id, "settled");
    assert.equal(settled.body.state, "created");
    const start = await on(`POST ${id}/start`);
    assert.deepEqual(start.body, { previous_state: "created", migrated: false, new_host: "" });
    await wait(id, "started");
    assert.equal((await on(`POST ${id}/start`)).body.previous_state, "started");
    assert.equal((await on(`GET ${id}`)).body.cordoned, true);
  });

  test("a machine is stopped, started, suspended, resumed, and stopped while suspended", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id, instance_id } = (await create()).body;
    await wait(id, "started");
    assert.deepEqual((await on(`POST ${id}/stop`, { signal: "SIGTERM", timeout: "30" })).body, { ok: true });
    assert.equal((await wait(id, "stopped", `&instance_id=${instance_id}`)).status, 200);
    const [exit] = (await on(`GET ${id}`)).body.events;
    assert.deepEqual([exit.type, exit.status, exit.request.exit_event.requested_stop], ["exit", "stopped", true]);
    assert.match(exit.request.exit_event.exited_at, /^\d{4}-\d\d-\d\dT/);
    assert.equal((await on(`POST ${id}/stop`)).status, 200);
    await on(`POST ${id}/start`);
    await wait(id, "started");
    assert.deepEqual((await on(`POST ${id}/suspend`)).body, { ok: true });
    assert.equal((await wait(id, "suspended")).body.state, "suspended");
    await on(`POST ${id}/start`);
    await wait(id, "started");
    assert.equal((await on(`GET ${id}`)).body.events[0].request.resumed, true);
    await on(`POST ${id}/suspend`);
    await on(`POST ${id}/stop`);
    await wait(id, "stopped", `&instance_id=${instance_id}`);
    await on(`POST ${id}/start`);
    await wait(id, "started");
    assert.equal((await on(`GET ${id}`)).body.events[0].request, undefined, "a cold boot");
    const refused = (await on(`POST ${id}/stop`, { signal: "SIGNOPE" })).body;
    assert.deepEqual([refused.status, refused.details[0].path], ["invalid_request", "body.signal"]);
  });

  test("a machine that cannot be suspended is stopped, and its event says why", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id } = (await create({ config: { image: IMAGE, env: { SIM_SUSPEND: "a tty is open" } } })).body;
    await wait(id, "started");
    await on(`POST ${id}/suspend`);
    await wait(id, "settled");
    const { state, events } = (await on(`GET ${id}`)).body;
    assert.equal(state, "stopped");
    assert.match(events[0].request.reason, /a tty is open/);
    const refused = await on(`POST ${id}/suspend`);
    assert.deepEqual([refused.status, refused.body.status], [412, "wrong_state"]);
    assert.match(refused.body.error, /unable to suspend machine from current state: 'stopped'/);
  });

  test("update replaces the whole config and boots the machine, unless skip_launch", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id, instance_id } = (await create({ config: { image: IMAGE, env: { A: "1" } } })).body;
    await wait(id, "started");
    const updated = (await on(`POST ${id}`, { config: { image: "web:2" }, current_version: instance_id })).body;
    assert.notEqual(updated.instance_id, instance_id);
    assert.equal(updated.state, "replacing");
    assert.equal(updated.config.env, undefined);
    assert.equal(updated.image_ref.repository, "library/web");
    await wait(id, "started");
    const stale = await on(`POST ${id}`, { config: { image: "web:3" }, current_version: instance_id });
    assert.deepEqual(
      [stale.status, stale.body.status, stale.body.current_version],
      [409, "version_conflict", updated.instance_id],
    );
    for (const [field, value] of [
      ["name", "other"],
      ["region", "ams"],
    ] as const) {
      const moved = await on(`POST ${id}`, { config: { image: "web:3" }, [field]: value });
      assert.deepEqual([moved.status, moved.body.details[0].path], [400, `body.${field}`]);
    }
    await on(`POST ${id}/stop`);
    await wait(id, "settled");
    const resting = (await on(`POST ${id}`, { config: { image: "web:4" }, skip_launch: true })).body;
    assert.equal((await wait(id, "settled")).body.state, "stopped");
    assert.equal((await on(`GET ${id}`)).body.instance_id, resting.instance_id);
    await on(`POST ${id}`, { config: { image: "web:5" } });
    assert.equal((await wait(id, "settled")).body.state, "started");
    const versions = (await on(`GET ${id}/versions`)).body;
    assert.deepEqual(
      versions.map((version: { user_config: { image: string } }) => version.user_config.image),
      ["web:5", "web:4", "web:2", IMAGE],
    );
  });

  test("deleting a running machine needs force; a deleted machine can still be read", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id } = (await create({ name: "gone" })).body;
    await wait(id, "started");
    const refused = await on(`DELETE ${id}`);
    assert.deepEqual([refused.status, refused.body.status], [409, "machine_running"]);
    assert.match(refused.body.error, /unable to destroy machine, not currently stopped/);
    assert.deepEqual((await on(`DELETE ${id}?force=true`)).body, { ok: true });
    assert.equal((await wait(id, "destroyed")).status, 200);
    assert.equal((await on(`GET ${id}`)).body.state, "destroyed");
    assert.deepEqual((await on("GET")).body, []);
    assert.equal((await on("GET ?include_deleted=true")).body.length, 1);
    assert.equal((await on(`POST ${id}/start`)).status, 404);
    assert.equal((await create({ name: "gone" })).status, 200, "the name is free again");
    const other = (await create({ skip_launch: true })).body;
    assert.equal((await on(`DELETE ${other.id}`)).status, 200);
    assert.match((await on("GET 00000000000000")).body.error, /machine not found/);
  });

  test("force stops with the running version's stop_config, kill at once; an update stops with the old one", async (t) => {
    const { create, on, wait } = await bench(t);
    const config = (signal: string, more: object = {}) => ({
      config: { image: "web:1", stop_config: { signal }, ...more },
    });
    const exitOf = async (id: string) => {
      const { events } = (await on(`GET ${id}`)).body;
      return events.find(({ type }: { type: string }) => type === "exit")?.request.exit_event;
    };
    const logOf = async (id: string): Promise<string[]> =>
      (await on(`GET ${id}/logs`)).body.lines.map(({ message }: { message: string }) => message);
    const { id } = (await create(config("SIGTERM"))).body;
    await wait(id, "started");
    const { instance_id } = (await on(`POST ${id}`, config("SIGUSR1"))).body;
    await on(`GET ${id}/wait?state=started&instance_id=${instance_id}`);
    assert.deepEqual(await logOf(id), ["started web:1", "stopped by SIGTERM", "started again web:1"]);
    await on(`DELETE ${id}?force=true`);
    await wait(id, "destroyed");
    assert.deepEqual([(await exitOf(id)).exit_code, (await exitOf(id)).signal], [0, -1], "it ended by itself");
    const slow = { env: { SIM_STOP_MS: "300000" }, stop_config: { signal: "SIGTERM", timeout: "300s" } };
    const other = (await create(config("SIGTERM", slow))).body.id;
    await wait(other, "started");
    await on(`DELETE ${other}?force=true`);
    assert.equal((await on(`GET ${other}`)).body.state, "destroying");
    await on(`DELETE ${other}?kill=true`);
    await wait(other, "destroyed");
    assert.equal((await exitOf(other)).signal, 9);
  });

  test("list filters by region, state, and any number of metadata pairs", async (t) => {
    const { create, on, wait } = await bench(t);
    const made: string[] = [];
    for (const [group, color] of [
      ["a", "red"],
      ["a", "blue"],
      ["b", "red"],
    ]) {
      made.push((await create({ config: { image: IMAGE, metadata: { group, color } } })).body.id);
    }
    for (const id of made) await wait(id, "started");
    await on(`POST ${made[2]}/stop`);
    await wait(made[2] ?? "", "settled");
    const ids = async (query: string): Promise<string[]> =>
      (await on(`GET ?${query}`)).body.map((machine: { id: string }) => made.indexOf(machine.id));
    assert.deepEqual(await ids(""), [0, 1, 2]);
    assert.deepEqual(await ids("metadata.group=a"), [0, 1]);
    assert.deepEqual(await ids("metadata.group=a&metadata.color=red"), [0]);
    assert.deepEqual(await ids("metadata.color=red&state=stopped"), [2]);
    assert.deepEqual(await ids("state=started,stopped&region=local"), [0, 1, 2]);
    assert.deepEqual(await ids("region=ams"), []);
    assert.deepEqual(await ids("metadata.group=none"), []);
    assert.equal((await on("GET ?state=odd")).status, 400);
    const [short] = (await on("GET ?summary=true")).body;
    assert.deepEqual([short.config, short.events, short.id], [undefined, undefined, made[0]]);
  });

  test("cordon, uncordon and metadata change nothing else", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id, instance_id } = (await create()).body;
    await wait(id, "started");
    assert.deepEqual((await on(`POST ${id}/cordon`)).body, { ok: true });
    assert.equal((await on(`GET ${id}`)).body.cordoned, true);
    await on(`POST ${id}/uncordon`);
    assert.equal((await on(`GET ${id}`)).body.cordoned, false);
    assert.deepEqual((await on(`GET ${id}/metadata`)).body, {});
    const put = await on(`POST ${id}/metadata/role`, { value: "db" });
    assert.deepEqual([put.status, put.text], [204, ""]);
    assert.deepEqual((await on(`GET ${id}/metadata`)).body, { role: "db" });
    assert.deepEqual((await on(`GET ${id}/metadata/role`)).body, { value: "db" });
    assert.equal((await on("GET ?metadata.role=db")).body.length, 1);
    assert.equal((await on(`PATCH ${id}/metadata`, { metadata: { role: null, zone: "x" } })).status, 204);
    assert.deepEqual((await on(`GET ${id}`)).body.config.metadata, { zone: "x" });
    assert.equal((await on(`PUT ${id}/metadata`, { metadata: { only: "y" }, machine_version: "old" })).status, 412);
    await on(`PUT ${id}/metadata`, { metadata: { only: "y" } });
    assert.equal((await on(`DELETE ${id}/metadata/only`)).status, 204);
    assert.deepEqual((await on(`GET ${id}/metadata`)).body, {});
    assert.equal((await on(`GET ${id}/metadata/only`)).status, 404);
    assert.equal((await on(`POST ${id}/metadata/x`, {})).body.details[0].path, "body.value");
    const after = (await on(`GET ${id}`)).body;
    assert.deepEqual([after.instance_id, after.state], [instance_id, "started"]);
  });
});

suite("machines: leases and waiting", () => {
  test("a lease is acquired, read, refreshed with its nonce, and released", async (t) => {
    const { create, on } = await bench(t);
    const { id, instance_id } = (await create({ skip_launch: true })).body;
    const none = await on(`GET ${id}/lease`);
    assert.equal(none.status, 404);
    assert.match(none.body.error, / lease not found/);
    const taken = await on(`POST ${id}/lease`, { ttl: 60, description: "deploy 7" });
    assert.equal(taken.status, 201);
    const { nonce, expires_at, owner, description, version } = taken.body.data;
    assert.equal(taken.body.status, "success");
    assert.deepEqual([description, version], ["deploy 7", instance_id]);
    assert.ok(expires_at > Date.now() / 1000 + 50 && expires_at < Date.now() / 1000 + 70);
    assert.equal((await on(`GET ${id}`)).body.nonce, nonce);
    assert.equal((await on(`GET ${id}/lease`)).body.data.nonce, nonce);
    const held = await on(`POST ${id}/lease?ttl=5`);
    assert.deepEqual([held.status, held.body.status, held.body.holder], [409, "lease_held", owner]);
    assert.match(held.body.error, /lease currently held by .*deploy 7/);
    const header = { "svc-machine-lease-nonce": nonce };
    const again = await on(`POST ${id}/lease?ttl=300`, undefined, header);
    assert.equal(again.body.data.nonce, nonce);
    assert.ok(again.body.data.expires_at > expires_at);
    assert.equal((await on(`DELETE ${id}/lease`)).status, 400);
    assert.equal((await on(`DELETE ${id}/lease`, undefined, { "svc-machine-lease-nonce": "x" })).status, 409);
    assert.deepEqual((await on(`DELETE ${id}/lease`, undefined, header)).body, {
      status: "success",
      data: { ok: true },
    });
    assert.equal((await on(`GET ${id}`)).body.nonce, undefined);
    assert.equal((await on(`POST ${id}/lease/?ttl=5`)).status, 201, "a trailing slash is no other path");
  });

  test("every change of a leased machine needs the nonce", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id, nonce } = (await create({ lease_ttl: 100 })).body;
    assert.match(nonce, /^[0-9a-f]{32}$/);
    await wait(id, "started");
    const config = { image: IMAGE };
    const calls: [string, unknown][] = [
      [`POST ${id}`, { config }],
      [`PATCH ${id}`, { config: {} }],
      [`POST ${id}/metadata/a`, { value: "1" }],
      [`PATCH ${id}/metadata`, { metadata: { a: "2" } }],
      [`DELETE ${id}/metadata/a`, undefined],
      [`POST ${id}/cordon`, undefined],
      [`POST ${id}/uncordon`, undefined],
      [`POST ${id}/suspend`, undefined],
      [`POST ${id}/start`, undefined],
      [`POST ${id}/restart`, undefined],
      [`POST ${id}/stop`, undefined],
      [`DELETE ${id}?force=true`, undefined],
    ];
    for (const [target, body] of calls) {
      const refused = await on(target, body);
      assert.deepEqual([refused.status, refused.body?.status], [409, "lease_held"], target);
      assert.equal((await on(target, body, { "svc-machine-lease-nonce": "0".repeat(32) })).status, 409, target);
    }
    for (const [target, body] of calls) {
      const done = await on(target, body, { "svc-machine-lease-nonce": nonce });
      assert.ok(done.status < 300, `${target}: ${done.text}`);
      if (!target.startsWith("DELETE")) await wait(id, "settled");
    }
  });

  test("a queued lease request succeeds when the lease is released", async (t) => {
    const { create, on } = await bench(t);
    const { id } = (await create({ skip_launch: true })).body;
    const { nonce } = (await on(`POST ${id}/lease`, { ttl: 600 })).body.data;
    const queued = on(`POST ${id}/lease?wait=20&ttl=7`);
    await on(`DELETE ${id}/lease`, undefined, { "svc-machine-lease-nonce": nonce });
    const { status, body } = await queued;
    assert.equal(status, 201);
    assert.notEqual(body.data.nonce, nonce);
  });

  test("wait defaults to started, stopped needs an instance, and a timeout reports the state", async (t) => {
    const { create, on } = await bench(t);
    const { id, instance_id } = (await create({ skip_launch: true })).body;
    assert.equal((await on(`GET ${id}/wait?state=stopped`)).status, 400);
    assert.match(
      (await on(`GET ${id}/wait?state=stopped`)).body.error,
      /instance_id required when waiting for stopped/,
    );
    assert.equal((await on(`GET ${id}/wait?state=odd`)).status, 400);
    assert.equal((await on(`GET ${id}/wait?timeout=soon`)).status, 400);
    const late = await on(`GET ${id}/wait?timeout=1`);
    assert.deepEqual([late.status, late.body.status, late.body.current_state], [408, "wait_timeout", "created"]);
    assert.match(late.body.error, /machine failed to reach desired state, started, currently created/);
    const waiting = on(`GET ${id}/wait?state=stopped,failed&state=started&instance_id=${instance_id}`);
    await on(`POST ${id}/start`);
    assert.equal((await waiting).body.state, "started");
    assert.equal((await on(`GET ${id}/wait?instance_id=01ARZ3NDEKTSV4RRFFQ69G5FAV`)).body.status, "version_conflict");
    assert.equal((await on("GET 00000000000000/wait")).status, 404);
  });

  test("wait for healthy ends when every check passes", async (t) => {
    const { create, on, wait } = await bench(t);
    const checks = { alive: { type: "tcp", port: 80, interval: "1s" } };
    const services = ["/", "/deep"].map((path) => ({
      protocol: "tcp",
      internal_port: 80,
      checks: [{ type: "http", path }],
    }));
    const { id } = (await create({ config: { image: IMAGE, checks, services } })).body;
    assert.equal((await wait(id, "healthy")).status, 200);
    const shown = (await on(`GET ${id}`)).body.checks;
    assert.deepEqual(Object.keys(shown).sort(), ["alive", "servicecheck-00-http-80", "servicecheck-01-http-80"]);
    assert.equal(shown.alive.status, "passing");
    const sick = (await create({ config: { image: IMAGE, checks, env: { SIM_CHECK: "refused" } } })).body;
    await wait(sick.id, "started");
    assert.equal((await on(`GET ${sick.id}/wait?state=healthy&timeout=1`)).status, 408);
    assert.equal((await on(`GET ${sick.id}`)).body.checks.alive.status, "critical");
  });
});
