/** The Machines API beyond the specification's table. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { bench, IMAGE } from "./machine-bench.ts";
import { testPlatform } from "./platform.ts";
import { runs } from "./support.ts";

suite("machines: beyond the specification's table", () => {
  test("restart, signal, exec, ps and logs work", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id, instance_id } = (await create({ config: { image: IMAGE, restart: { policy: "no" } } })).body;
    assert.equal((await on("GET x/ps")).status, 404);
    await wait(id, "started");
    const run = await on(`POST ${id}/exec`, { cmd: `echo "a b" c` });
    assert.deepEqual(run.body, { exit_code: 0, stdout: "a b c\n", stderr: "" });
    assert.equal((await on(`POST ${id}/exec`, { command: ["cat"], stdin: "in" })).body.stdout, "in");
    assert.equal((await on(`POST ${id}/exec`, {})).status, 400);
    assert.equal((await on(`GET ${id}/ps`)).body[0].pid, 1);
    assert.equal((await on(`POST ${id}/restart?timeout=5s&signal=TERM`)).status, 200);
    await wait(id, "settled");
    const told = (await on(`GET ${id}/events?limit=4`)).body.map(
      (event: { type: string; status: string }) => `${event.type}/${event.status}`,
    );
    assert.deepEqual(told, ["start/started", "start/starting", "exit/stopped", "restart/restarting"]);
    assert.ok((await on(`GET ${id}/logs?tail=2`)).body.lines.length > 0);
    assert.equal((await on(`POST ${id}/signal`, { signal: 9 })).status, 200);
    await wait(id, "stopped", `&instance_id=${instance_id}`);
    const [exit] = (await on(`GET ${id}`)).body.events;
    assert.deepEqual(
      [exit.type, exit.request.exit_event.signal, exit.request.exit_event.requested_stop],
      ["exit", 9, false],
    );
    assert.equal((await on(`POST ${id}/exec`, { cmd: "true" })).status, 412);
  });

  test("PATCH merges into the config and refuses a stale version", async (t) => {
    const { create, on, wait } = await bench(t);
    const config = { image: IMAGE, env: { A: "1", B: "2" }, metadata: { k: "v" } };
    const { id, instance_id } = (await create({ config })).body;
    await wait(id, "started");
    const patched = (await on(`PATCH ${id}`, { config: { env: { B: null, C: "3" } }, current_version: instance_id }))
      .body;
    assert.deepEqual(
      [patched.config.env, patched.config.image, patched.config.metadata],
      [{ A: "1", C: "3" }, IMAGE, { k: "v" }],
    );
    assert.equal((await on(`PATCH ${id}`, { config: {}, current_version: instance_id })).status, 409);
    const wrong = (await on(`PATCH ${id}`, { config: { guest: { memory_mb: 300 } } })).body;
    assert.equal(wrong.details[0].path, "body.config.guest.memory_mb");
  });

  test("requests for a busy machine queue and run in order", async (t) => {
    const { create, on, wait } = await bench(t);
    const { id } = (await create({ config: { image: IMAGE, env: { SIM_BOOT_MS: "30", SIM_STOP_MS: "10" } } })).body;
    for (const verb of ["stop", "start", "suspend", "start", "restart", "stop"]) {
      assert.equal((await on(`POST ${id}/${verb}`)).status, 200, verb);
    }
    assert.equal((await wait(id, "settled")).body.state, "stopped");
    const seen = (await on(`GET ${id}/events?limit=50`)).body
      .map((event: { status: string }) => event.status)
      .reverse();
    const expected =
      "created starting started stopping stopped starting started suspending suspended starting started " +
      "restarting stopped starting started stopping stopped";
    assert.equal(seen.join(" "), expected);
  });

  test("an organization's machines are listed in pages", async (t) => {
    const { create, ask, wait } = await bench(t);
    for (let i = 0; i < 5; i++) await wait((await create({ name: `m-${i}` })).body.id, "started");
    const first = (await ask("GET /v1/orgs/personal/machines?limit=3")).body;
    assert.equal(first.machines.length, 3);
    const second = (await ask(`GET /v1/orgs/personal/machines?limit=3&cursor=${first.next_cursor}`)).body;
    assert.deepEqual([second.machines.length, second.next_cursor], [2, undefined]);
    const names = [...first.machines, ...second.machines].map((machine: { name: string }) => machine.name);
    assert.deepEqual(names.sort(), ["m-0", "m-1", "m-2", "m-3", "m-4"]);
    assert.equal((await ask("GET /v1/orgs/personal/machines?cursor=odd")).status, 400);
  });

  test("an organization's machines are searched, kept in order and counted by state", async (t) => {
    const { create, ask, wait, on } = await bench(t);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      const { id } = (await create({ name: `m-${i}` })).body;
      await wait(id, "started");
      ids.push(id);
    }
    await on(`POST ${ids[0]}/stop`);
    await wait(ids[0] ?? "", "settled");
    const list = async (query: string) => (await ask(`GET /v1/orgs/personal/machines?${query}`)).body;
    const names = (body: { machines: { name: string }[] }) => body.machines.map(({ name }) => name);
    const first = await list("sort=created&search=M-&limit=3&count=true");
    assert.deepEqual(names(first), ["m-0", "m-1", "m-2"]);
    assert.deepEqual(first.counts, { machines: 5, states: { started: 4, stopped: 1 }, exact: true });
    assert.deepEqual(names(await list(`sort=created&search=M-&limit=3&cursor=${first.next_cursor}`)), ["m-3", "m-4"]);
    const stopped = await list("search=m-&state=stopped&count=true");
    assert.deepEqual([names(stopped), stopped.counts.machines], [["m-0"], 5]);
    assert.deepEqual(names(await list(`search=${ids[3]}`)), ["m-3"]);
    assert.deepEqual(names(await list("search=nothing")), []);
    assert.equal((await list("search=m-")).counts, undefined);

    const refused = async (query: string) => {
      const answer = await ask(`GET /v1/orgs/personal/machines?${query}`);
      assert.equal(answer.status, 400, answer.text);
      return answer.text;
    };
    assert.match(await refused(`search=${"w+".repeat(9)}`), /9 words \(limit search_words\)/);
    assert.match(await refused(`search=${"w".repeat(201)}`), /query\.search/);
    assert.match(await refused("sort=name"), /query\.sort/);
    assert.match(await refused(`limit=3&cursor=${first.next_cursor}`), /not a cursor of this list/);
    assert.match(await refused("sort=created&updated_after=2024-01-31T12:00:00Z"), /sort=changed/);
  });

  test("names are unique in an app, and one Idempotency-Key makes one machine of a hundred requests (M7)", async (t) => {
    const { create, on } = await bench(t);
    const many = await Promise.all(Array.from({ length: 100 }, () => create({ name: "one" })));
    assert.equal(many.filter((answer) => answer.status === 200).length, 1);
    assert.ok(many.every((answer) => answer.status === 200 || answer.body.status === "name_taken"));
    const body = { config: { image: IMAGE } };
    const repeated = await Promise.all(
      Array.from({ length: 100 }, () => on("POST", body, { "idempotency-key": "again" })),
    );
    assert.equal(new Set(repeated.map((answer) => answer.body.id)).size, 1);
    assert.equal((await on("GET")).body.length, 2);
    for (const name of ["A", "a b", "-a", "a:b"])
      assert.equal((await create({ name })).body.status, "invalid_name", name);
  });

  test("a created machine can be read at once, without a 404 (M6)", async (t) => {
    const { create, on } = await bench(t);
    for (let i = 0; i < runs(300, 10_000); i++) {
      const { id } = (await create({ skip_launch: true })).body;
      assert.equal((await on(`GET ${id}`)).status, 200);
    }
  });

  test("deleting an app with machines needs force, and deletes them", async (t) => {
    const { create, ask, wait } = await bench(t);
    const { id } = (await create()).body;
    await wait(id, "started");
    assert.equal((await ask("GET /v1/apps/web")).body.machine_count, 1);
    assert.equal((await ask("DELETE /v1/apps/web")).body.status, "app_not_empty");
    assert.equal((await ask("DELETE /v1/apps/web?force=true")).status, 202);
    assert.equal((await ask("GET /v1/apps/web")).status, 404);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    assert.equal((await ask(`GET /v1/apps/web/machines/${id}`)).status, 404);
  });

  test("machines keep running through a restart of the platform, and pending operations complete", async (t) => {
    const one = await bench(t);
    const { id } = (await one.create()).body;
    await one.wait(id, "started");
    const slow = (await one.create({ config: { image: IMAGE, env: { SIM_BOOT_MS: "500" } } })).body;
    await one.close();
    const two = await testPlatform(t, { HANGAR_DATA_DIR: one.data_dir });
    const back = (await two.ask(`GET /v1/apps/web/machines/${id}`)).body;
    assert.deepEqual([back.state, back.events.length], ["started", 3]);
    assert.equal((await two.ask(`GET /v1/apps/web/machines/${slow.id}/wait`)).status, 200);
  });
});
