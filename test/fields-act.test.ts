/** Fields that once had no effect now have one, and invalid values are refused. */
import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { bench, IMAGE } from "./machine-bench.ts";
import { until } from "./support.ts";
import { withHosts } from "./volumes-api.ts";

const resting = (config: object): object => ({ config: { image: IMAGE, ...config }, skip_launch: true });

suite("fields that act: machines", () => {
  test("a failing informational check delays no wait; a readiness check does", async (t) => {
    const { create, wait } = await bench(t);
    const failing = (kind: string) => ({
      image: IMAGE,
      env: { SIM_CHECK: "fail" },
      checks: { a: { type: "tcp", port: 1, interval: "1s", kind } },
    });
    const shown = (await create({ config: failing("informational") })).body;
    assert.equal((await wait(shown.id, "healthy", "&timeout=10")).status, 200);
    const gated = (await create({ config: failing("readiness") })).body;
    assert.equal((await wait(gated.id, "healthy", "&timeout=1")).status, 408);
  });

  test("a mount by volume name takes a free volume of that name, and keeps it in updates", async (t) => {
    const { create, on, ask } = await bench(t);
    const volume = async () =>
      (await ask("POST /v1/apps/web/volumes", { body: { name: "data", require_unique_zone: false } })).body.id;
    const volumes = [await volume(), await volume()];
    const mounts = [{ path: "/data", name: "data" }];
    const taken = [];
    for (const _ of volumes) taken.push((await create(resting({ mounts }))).body);
    assert.deepEqual(new Set(taken.map(({ config }) => config.mounts[0].volume)), new Set(volumes));
    const none = await create(resting({ mounts }));
    assert.deepEqual([none.status, none.body.status], [412, "volume_in_use"]);
    const unknown = await create(resting({ mounts: [{ path: "/data", name: "dta" }] }));
    assert.equal(unknown.body.details[0].path, "body.config.mounts.0.name", unknown.text);
    const [{ id, config }] = taken;
    const updated = await on(`POST ${id}`, resting({ mounts: [{ path: "/data" }] }));
    assert.equal(updated.body.config.mounts[0].volume, config.mounts[0].volume);
    const renamed = await on(`POST ${id}`, resting({ mounts: [{ path: "/data", name: "other" }] }));
    assert.equal(renamed.body.details[0].path, "body.config.mounts.0.name", renamed.text);
  });

  test("a mount whose name or encryption does not match its volume is refused", async (t) => {
    const { create, on, ask } = await bench(t);
    const body = { name: "data", encrypted: false, size_gb: 2 };
    const { id: volume } = (await ask("POST /v1/apps/web/volumes", { body })).body;
    const mount = (more: object) => resting({ mounts: [{ volume, path: "/data", ...more }] });
    for (const [wrong, path] of [
      [{ name: "log" }, "name"],
      [{ encrypted: true }, "encrypted"],
    ] as const) {
      assert.equal((await create(mount(wrong))).body.details[0].path, `body.config.mounts.0.${path}`);
    }
    const made = await create(mount({ name: "data", encrypted: false, size_gb: 3 }));
    assert.deepEqual(made.body.warnings, [`config.mounts.0.size_gb is 3, but volume ${volume} has 2 GB; extend it`]);
    const promised = await on(`POST ${made.body.id}`, mount({ encrypted: true }));
    assert.equal(promised.body.details[0].path, "body.config.mounts.0.encrypted");
    assert.equal((await on(`POST ${made.body.id}`, mount({ size_gb: 2 }))).body.warnings, undefined);
  });

  test("standbys must be machines of the app; an update may keep a destroyed one", async (t) => {
    const { create, on, ask, wait } = await bench(t);
    await ask("POST /v1/apps", { body: { app_name: "other" } });
    const foreign = (await ask("POST /v1/apps/other/machines", { body: resting({}) })).body.id;
    for (const id of ["m1", foreign]) {
      const refused = await create(resting({ standbys: [id] }));
      assert.deepEqual([refused.status, refused.body.details[0].path], [400, "body.config.standbys.0"], refused.text);
      assert.match(refused.body.error, new RegExp(`"${id}" is not a machine of this app`));
    }
    const primary = (await create(resting({}))).body.id;
    const made = await create(resting({ standbys: [primary] }));
    assert.equal(made.status, 200, made.text);
    const { id } = made.body;
    assert.equal((await on(`POST ${id}`, resting({ standbys: [primary, id] }))).status, 400);
    await on(`DELETE ${primary}`);
    await wait(primary, "destroyed");
    assert.equal((await on(`POST ${id}`, resting({ standbys: [primary] }))).status, 200);
    assert.equal((await create(resting({ standbys: [primary] }))).status, 400);
  });

  test("the id in the body of an update or a stop must be the machine's own", async (t) => {
    const { create, on } = await bench(t);
    const { id } = (await create(resting({}))).body;
    for (const [path, body] of [
      ["", resting({})],
      ["/stop", {}],
    ] as const) {
      assert.equal((await on(`POST ${id}${path}`, { ...body, id })).status, 200);
      assert.equal((await on(`POST ${id}${path}`, { ...body, id: "another" })).body.details[0].path, "body.id");
    }
  });

  test("a secrets version that does not exist yet is refused", async (t) => {
    const { create, on, ask } = await bench(t);
    const { version } = (await ask("POST /v1/apps/web/secrets", { body: { values: { A: "1" } } })).body;
    const made = await create({ ...resting({}), min_secrets_version: version });
    assert.equal(made.status, 200, made.text);
    const later = { ...resting({}), min_secrets_version: version + 1 };
    for (const refused of [await create(later), await on(`POST ${made.body.id}`, later)]) {
      assert.equal(refused.body.details[0].path, "body.min_secrets_version");
      assert.match(refused.body.error, new RegExp(`the app's secrets are at version ${version}`));
    }
  });

  test("a region without a host is refused, or a warning where no hosts are declared", async (t) => {
    const { create, ask } = await bench(t);
    const made = await create({ ...resting({}), region: "mars" });
    const told = "region mars is a name only: this box declares no hosts, so everything runs in region local";
    assert.deepEqual([made.status, made.body.warnings], [200, [told]]);
    assert.equal((await create({ ...resting({}), region: "local" })).body.warnings, undefined);
    const volume = await ask("POST /v1/apps/web/volumes", { body: { name: "data", region: "mars" } });
    assert.deepEqual([volume.status, volume.body.warnings], [200, [told]]);
    const declared = await withHosts(t);
    for (const noun of ["machines", "volumes"]) {
      const body = { ...resting({}), name: "data", region: "mars" };
      const refused = await declared.ask(`POST /v1/apps/web/${noun}`, { body });
      assert.deepEqual(refused.body.details, [
        { path: "body.region", problem: "is not a region here", allowed: "ams, fra" },
      ]);
    }
  });
});

suite("fields that act: volumes", () => {
  test("min_add_size_gb is the least that a volume grows by with add_size_percent", async (t) => {
    const clock = virtualClock();
    const { ask, on, data_dir } = await bench(t, {}, { clock });
    const { id: volume } = (await ask("POST /v1/apps/web/volumes", { body: { name: "data", size_gb: 1 } })).body;
    const rule = { extend_threshold_percent: 1, add_size_percent: 10, min_add_size_gb: 3, size_gb_limit: 4 };
    await on("POST", resting({ mounts: [{ volume, path: "/data", ...rule }] }));
    const image = openSync(join(data_dir, "volumes/volumes", `${volume}.img`), "r+");
    writeSync(image, Buffer.alloc(64 << 20, 1));
    closeSync(image);
    await until("it has grown", async () => {
      await clock.advance(5000);
      return (await ask(`GET /v1/apps/web/volumes/${volume}`)).body.size_gb > 1;
    });
    assert.equal((await ask(`GET /v1/apps/web/volumes/${volume}`)).body.size_gb, 4);
  });

  test("compute places the volume where that machine fits, with existing CPU kinds only", async (t) => {
    const { volumes } = await withHosts(t);
    const create = (compute: object) => volumes("POST", { name: "data", region: "ams", compute });
    assert.equal((await create({ cpus: 8, memory_mb: 4096 })).body.zone, "a2");
    const large = await create({ cpus: 16 });
    assert.deepEqual([large.status, large.body.status], [412, "insufficient_capacity"]);
    const odd = await create({ cpu_kind: "fast" });
    assert.deepEqual([odd.status, odd.body.details[0].path], [400, "body.compute.cpu_kind"]);
    assert.match(odd.body.details[0].problem, /"shared" or "performance"/);
  });

  test("unique_zone_app_wide chooses a zone without another volume of the app", async (t) => {
    const { volumes } = await withHosts(t);
    const create = (name: string) => volumes("POST", { name, region: "ams", unique_zone_app_wide: true });
    const zones = new Set([(await create("a")).body.zone, (await create("b")).body.zone]);
    assert.deepEqual(zones, new Set(["a1", "a2"]));
    const full = await create("c");
    assert.deepEqual([full.status, full.body.status], [412, "volume_placement_capacity"]);
    assert.match(full.body.error, /has a volume of this app already, and unique_zone_app_wide is true/);
  });
});
