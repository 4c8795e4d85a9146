/** The Volumes API, to the letter, on the sim disk: making, changing, placing, mounting. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { machine, openApi, withHosts } from "./volumes-api.ts";

suite("volumes: create, read, change, delete", () => {
  test("a new volume has the defaults of the specification; a later read has the block counts", async (t) => {
    const { volumes } = await openApi(t);
    const { status, body } = await volumes("POST", { name: "data" });
    assert.equal(status, 200);
    assert.match(body.id, /^vol_[a-z0-9]{16}$/);
    const wanted = {
      name: "data",
      state: "created",
      size_gb: 3,
      region: "local",
      zone: "0001",
      encrypted: true,
      attached_machine_id: null,
      attached_alloc_id: null,
      blocks: 0,
      block_size: 0,
      blocks_free: 0,
      blocks_avail: 0,
      fstype: "",
      snapshot_retention: 5,
      auto_backup_enabled: true,
      host_dedication_key: "",
    };
    assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((key) => [key, body[key]])), wanted);
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/);

    const read = (await volumes(`GET /${body.id}`)).body;
    assert.equal(read.fstype, "ext4");
    assert.equal(read.blocks * read.block_size, 3 * 1024 ** 3);
    assert.ok(read.blocks_free > 0 && read.blocks_avail <= read.blocks_free);
    assert.deepEqual((await volumes("GET")).body, [read]);
    assert.equal((await volumes("GET ?summary=true")).body[0].blocks, 0);
  });

  test("null is absence, and invalid values are refused with their path", async (t) => {
    const { volumes } = await openApi(t);
    const nulls = { region: null, size_gb: null, encrypted: null, snapshot_id: null, compute: null, fstype: null };
    assert.equal((await volumes("POST", { name: "n", ...nulls })).status, 200);
    const wrong: [object, RegExp][] = [
      [{}, /body\.name is required/],
      [{ name: "" }, /body\.name/],
      [{ name: "a b" }, /body\.name is not a name/],
      [{ name: "x".repeat(64) }, /body\.name/],
      [{ name: "d", size_gb: 0 }, /body\.size_gb/],
      [{ name: "d", size_gb: -1 }, /body\.size_gb/],
      [{ name: "d", size_gb: 501 }, /body\.size_gb/],
      [{ name: "d", size_gb: 1e15 }, /body\.size_gb/],
      [{ name: "d", size_gb: 1.5 }, /body\.size_gb/],
      [{ name: "d", snapshot_retention: 0 }, /body\.snapshot_retention/],
      [{ name: "d", snapshot_retention: 61 }, /body\.snapshot_retention/],
      [{ name: "d", fstype: "xfs" }, /body\.fstype/],
      [{ name: "d", snapshot_id: "vs_x" }, /body\.region is required/],
      [{ name: "d", snapshot_id: "vs_x", source_volume_id: "vol_x" }, /one thing/],
    ];
    for (const [body, text] of wrong) {
      const answer = await volumes("POST", body);
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.body.error, text);
      assert.ok(answer.body.details.length > 0);
    }
    assert.equal((await volumes("POST", { name: "d", region: "r", snapshot_id: "vs_x" })).status, 404);
    assert.equal((await volumes("POST", { name: "d", source_volume_id: "vol_x" })).status, 404);
    for (const target of ["GET /vol_x", "DELETE /vol_x", "GET /vol_x/snapshots", "POST /vol_x/snapshots"]) {
      assert.equal((await volumes(target)).status, 404, target);
    }
  });

  test("only retention and daily snapshots can be changed; the response has no block counts", async (t) => {
    const { volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data", auto_backup_enabled: false, snapshot_retention: 60 })).body;
    const { status, body } = await volumes(`PUT /${id}`, { auto_backup_enabled: true, snapshot_retention: 1 });
    assert.equal(status, 200);
    assert.deepEqual([body.auto_backup_enabled, body.snapshot_retention, body.blocks, body.fstype], [true, 1, 0, ""]);
    assert.equal((await volumes(`PUT /${id}`, { snapshot_retention: 61 })).status, 400);
    assert.equal((await volumes(`PUT /${id}`, {})).body.snapshot_retention, 1);
  });

  test("a volume grows and never shrinks; the same size changes nothing (V4)", async (t) => {
    const { volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data", size_gb: 2 })).body;
    const grown = (await volumes(`PUT /${id}/extend`, { size_gb: 5 })).body;
    assert.deepEqual([grown.needs_restart, grown.volume.size_gb, grown.volume.state], [false, 5, "created"]);
    assert.equal(grown.volume.blocks * grown.volume.block_size, 5 * 1024 ** 3);
    const smaller = await volumes(`PUT /${id}/extend`, { size_gb: 4 });
    assert.equal(smaller.status, 400);
    assert.match(smaller.body.error, /has 5 GB, and a volume cannot get smaller/);
    assert.equal((await volumes(`PUT /${id}/extend`, { size_gb: 5 })).body.volume.size_gb, 5);
    for (const size_gb of [0, -3, 501, "6"]) {
      assert.equal((await volumes(`PUT /${id}/extend`, { size_gb } as object)).status, 400, String(size_gb));
    }
    assert.equal((await volumes(`PUT /${id}/extend`, {})).status, 400);
  });

  test("a deleted volume is `destroyed`, not listed, and can be restored", async (t) => {
    const { volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data" })).body;
    const { status, body } = await volumes(`DELETE /${id}`);
    assert.deepEqual([status, body.state, body.blocks, body.fstype], [200, "destroyed", 0, ""]);
    assert.deepEqual((await volumes("GET")).body, []);
    assert.equal((await volumes("GET ?include_deleted=true")).body.length, 1);
    assert.equal((await volumes(`GET /${id}`)).body.state, "destroyed");
    assert.equal((await volumes(`DELETE /${id}`)).status, 404);
    assert.equal((await volumes(`PUT /${id}/extend`, { size_gb: 9 })).status, 404);
    assert.equal((await volumes("POST", { name: "data" })).status, 200, "its zone is free again");
    assert.equal((await volumes(`POST /${id}/undelete`)).body.state, "created");
    assert.equal((await volumes("GET")).body.length, 2);
  });

  test("deleting an app with volumes needs force, and deletes them", async (t) => {
    const { ask, volumes } = await openApi(t);
    await volumes("POST", { name: "data" });
    const refused = await ask("DELETE /v1/apps/web");
    assert.deepEqual([refused.status, refused.body.status], [409, "app_not_empty"]);
    assert.equal((await ask("GET /v1/apps/web")).body.volume_count, 1);
    assert.equal((await ask("DELETE /v1/apps/web?force=true")).status, 202);
  });
});

suite("volumes: placement", () => {
  test("volumes of one name get different zones until there are no more", async (t) => {
    const { volumes } = await withHosts(t);
    const zones = new Set<string>();
    for (let i = 0; i < 2; i++) zones.add((await volumes("POST", { name: "data", region: "ams" })).body.zone);
    assert.deepEqual([...zones].toSorted(), ["a1", "a2"]);
    const full = await volumes("POST", { name: "data", region: "ams" });
    assert.deepEqual([full.status, full.body.status], [412, "volume_placement_capacity"]);
    assert.match(full.body.error, /every zone of region ams \(a1, a2\).*require_unique_zone is true/);
    assert.match(full.body.hint, /require_unique_zone: false/);
    const second = await volumes("POST", { name: "data", region: "ams", require_unique_zone: false });
    assert.equal(second.status, 200);
    assert.equal((await volumes("POST", { name: "other", region: "ams" })).status, 200);
    assert.equal((await volumes("POST", { name: "data", region: "fra" })).body.zone, "f1");
    assert.equal((await volumes("POST", { name: "data", region: "mars" })).status, 400);
  });

  test("compute places the volume where that machine fits", async (t) => {
    const { volumes } = await withHosts(t);
    const big = { cpu_kind: "performance", cpus: 6, memory_mb: 4096 };
    assert.equal((await volumes("POST", { name: "big", region: "ams", compute: big })).body.zone, "a2");
    const none = await volumes("POST", { name: "huge", region: "ams", compute: { cpus: 64 } });
    assert.deepEqual([none.status, none.body.status], [412, "insufficient_capacity"]);
  });
});

suite("volumes: attachment", () => {
  test("a volume is attached to one machine, and free again when that is destroyed", async (t) => {
    const { ask, volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data" })).body;
    const first = await ask("POST /v1/apps/web/machines", machine(id));
    assert.equal(first.status, 200);
    assert.equal((await volumes(`GET /${id}`)).body.attached_machine_id, first.body.id);
    const second = await ask("POST /v1/apps/web/machines", machine(id));
    assert.deepEqual([second.status, second.body.status], [412, "volume_in_use"]);
    assert.match(second.body.error, new RegExp(first.body.id));
    const refused = await volumes(`DELETE /${id}`);
    assert.deepEqual([refused.status, refused.body.attached_machine_id], [412, first.body.id]);
    await ask(`DELETE /v1/apps/web/machines/${first.body.id}?force=true`);
    await ask(`GET /v1/apps/web/machines/${first.body.id}/wait?state=destroyed`);
    assert.equal((await volumes(`GET /${id}`)).body.attached_machine_id, null);
    assert.equal((await ask("POST /v1/apps/web/machines", machine(id))).status, 200, "and can be mounted again");
  });

  test("a volume is deleted while its machine is destroyed, and its data after the machine", async (t) => {
    const { ask, volumes, data_dir } = await openApi(t, { HANGAR_VOLUME_UNDELETE_HOURS: "0" });
    const { id } = (await volumes("POST", { name: "data" })).body;
    const config = {
      image: "web:1",
      env: { SIM_STOP_MS: "300000" },
      stop_config: { timeout: "300s" },
      mounts: [{ volume: id, path: "/data" }],
    };
    const made = (await ask("POST /v1/apps/web/machines", { body: { config } })).body;
    await ask(`GET /v1/apps/web/machines/${made.id}/wait?state=started`);
    assert.equal((await volumes(`DELETE /${id}`)).status, 412, "its machine runs");
    await ask(`DELETE /v1/apps/web/machines/${made.id}?force=true`);
    const deleted = await volumes(`DELETE /${id}`);
    assert.deepEqual([deleted.status, deleted.body.state], [200, "destroyed"], deleted.text);
    assert.equal((await volumes(`DELETE /${id}`)).status, 404, "once");
    assert.equal((await volumes(`GET /${id}`)).body.attached_machine_id, made.id);
    await ask("POST /v1/platform/disk/collect", { body: { apply: true, deleted: true } });
    assert.ok(existsSync(join(data_dir, "volumes/volumes", `${id}.img`)), "the machine still uses it");
    await ask(`DELETE /v1/apps/web/machines/${made.id}?kill=true`);
    await ask(`GET /v1/apps/web/machines/${made.id}/wait?state=destroyed`);
    await ask("POST /v1/platform/disk/collect", { body: { apply: true, deleted: true } });
    assert.ok(!existsSync(join(data_dir, "volumes/volumes", `${id}.img`)), "now its data are gone");
  });

  test("an update or a patch keeps the mounted volume, and cannot add, change or remove one", async (t) => {
    const { ask, volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data" })).body;
    const on = (target: string, mounts: object[]) => {
      const [verb, machine = ""] = target.split(" ");
      return ask(`${verb} /v1/apps/web/machines/${machine}`, { body: { config: { image: "web:1", mounts } } });
    };
    const mounting = (await on("POST", [{ volume: id, path: "/data" }])).body;
    const plain = (await on("POST", [])).body;
    for (const verb of ["POST", "PATCH"]) {
      const kept = await on(`${verb} ${mounting.id}`, [{ path: "/else" }]);
      assert.equal(kept.status, 200, `${verb}: ${kept.text}`);
      assert.deepEqual(kept.body.config.mounts, [{ path: "/else", volume: id }]);
    }
    for (const [of, mounts, words] of [
      [plain, [{ path: "/data" }], /cannot be added/],
      [plain, [{ path: "/data", volume: id }], /cannot be added/],
      [mounting, [{ path: "/data", volume: "vol_00000000000000" }], /cannot be changed/],
      [mounting, [], /cannot be changed/],
    ] as const) {
      for (const verb of ["POST", "PATCH"]) {
        const refused = await on(`${verb} ${of.id}`, [...mounts]);
        assert.deepEqual([refused.status, refused.body.details?.[0].path], [400, "body.config.mounts"], refused.text);
        assert.match(refused.body.error, words);
      }
    }
  });

  test("of twenty concurrent machines exactly one gets the volume (V5)", async (t) => {
    const { ask, volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data" })).body;
    const made = await Promise.all(
      Array.from({ length: 20 }, () => ask("POST /v1/apps/web/machines", machine(id, { skip_launch: true }))),
    );
    const winners = made.filter(({ status }) => status === 200);
    assert.equal(winners.length, 1);
    assert.ok(made.every(({ status }) => status === 200 || status === 412));
    assert.equal((await volumes(`GET /${id}`)).body.attached_machine_id, winners[0]?.body.id);
  });

  test("a volume of another app or organization, or a deleted one, cannot be mounted (V5)", async (t) => {
    const { ask, volumes } = await openApi(t);
    await ask("POST /v1/orgs", { body: { name: "acme" } });
    await ask("POST /v1/apps", { body: { app_name: "other" } });
    await ask("POST /v1/apps", { body: { app_name: "foreign", org_slug: "acme" } });
    const foreign: string[] = [];
    for (const app of ["other", "foreign"]) {
      foreign.push((await ask(`POST /v1/apps/${app}/volumes`, { body: { name: "data" } })).body.id);
    }
    const { id } = (await volumes("POST", { name: "data" })).body;
    await volumes(`DELETE /${id}`);
    for (const volume of [...foreign, id, "vol_none"]) {
      const answer = await ask("POST /v1/apps/web/machines", machine(volume));
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.body.error, /is not a volume of this app/);
      assert.equal((await volumes(`GET /${volume}`)).status, volume === id ? 200 : 404);
      assert.equal((await volumes("POST", { name: "f", source_volume_id: volume })).status, volume === id ? 412 : 404);
    }
  });

  test("a volume on another host or in another region is refused with both places", async (t) => {
    const { ask, volumes } = await withHosts(t);
    const { id } = (await volumes("POST", { name: "data", region: "fra" })).body;
    const answer = await ask("POST /v1/apps/web/machines", machine(id, { region: "ams" }));
    assert.deepEqual([answer.status, answer.body.status], [412, "volume_elsewhere"]);
    assert.match(answer.body.error, /host 000c in region fra, not in ams/);
    assert.equal((await ask("POST /v1/apps/web/machines", machine(id))).body.region, "fra");
  });
});
