/** The Volumes API, to the letter, on the sim disk. */
import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { type Answer, type TestPlatform, testPlatform } from "./platform.ts";
import { tempDir } from "./support.ts";

const HOSTS = `
[[hosts]]
id = "000a"
region = "ams"
zone = "a1"
cpus = 4
memory_mb = 2048
[[hosts]]
id = "000b"
region = "ams"
zone = "a2"
cpus = 8
memory_mb = 8192
[[hosts]]
id = "000c"
region = "fra"
zone = "f1"
`;

interface Rig extends TestPlatform {
  /** A request about the volumes of app `web`. */
  volumes(target: string, body?: object): Promise<Answer>;
  until(target: string, done: (answer: Answer) => boolean): Promise<Answer>;
}

async function open(t: TestContext, env: Record<string, string> = {}): Promise<Rig> {
  const platform = await testPlatform(t, { HANGAR_DRIVER: "sim", ...env });
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const volumes: Rig["volumes"] = (target, body) => {
    const [method, path = ""] = target.split(" ");
    return platform.ask(`${method} /v1/apps/web/volumes${path}`, body ? { body } : {});
  };
  return {
    ...platform,
    volumes,
    async until(target, done) {
      const deadline = performance.now() + 30_000;
      for (;;) {
        const answer = await volumes(target);
        if (done(answer)) return answer;
        assert.ok(performance.now() < deadline, `${target}: ${answer.text}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}

async function withHosts(t: TestContext): Promise<Rig> {
  const config = join(tempDir(t), "hangar.toml");
  writeFileSync(config, HOSTS);
  // `readSettings` takes the file from the environment too.
  return await open(t, { HANGAR_CONFIG: config });
}

const machine = (volume: string, more: object = {}) => ({
  body: { config: { image: "web:1", mounts: [{ volume, path: "/data" }] }, ...more },
});

suite("volumes: create, read, change, delete", () => {
  test("a blank volume has the defaults of the specification; a later read has the file system's count", async (t) => {
    const { volumes } = await open(t);
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

  test("null is absence, and what is not allowed is refused with its place", async (t) => {
    const { volumes } = await open(t);
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

  test("retention and daily snapshots can be changed, nothing else; the answer has no counts", async (t) => {
    const { volumes } = await open(t);
    const { id } = (await volumes("POST", { name: "data", auto_backup_enabled: false, snapshot_retention: 60 })).body;
    const { status, body } = await volumes(`PUT /${id}`, { auto_backup_enabled: true, snapshot_retention: 1 });
    assert.equal(status, 200);
    assert.deepEqual([body.auto_backup_enabled, body.snapshot_retention, body.blocks, body.fstype], [true, 1, 0, ""]);
    assert.equal((await volumes(`PUT /${id}`, { snapshot_retention: 61 })).status, 400);
    assert.equal((await volumes(`PUT /${id}`, {})).body.snapshot_retention, 1);
  });

  test("grows and never shrinks; the same size changes nothing", async (t) => {
    const { volumes } = await open(t);
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

  test("a deleted volume is `destroyed`, not listed, and can be taken back", async (t) => {
    const { volumes } = await open(t);
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

  test("an app with volumes is not deleted by accident; with force they go", async (t) => {
    const { ask, volumes } = await open(t);
    await volumes("POST", { name: "data" });
    const refused = await ask("DELETE /v1/apps/web");
    assert.deepEqual([refused.status, refused.body.status], [409, "app_not_empty"]);
    assert.equal((await ask("GET /v1/apps/web")).body.volume_count, 1);
    assert.equal((await ask("DELETE /v1/apps/web?force=true")).status, 202);
  });
});

suite("volumes: placement", () => {
  test("volumes of one name go to zones of their own until these run out", async (t) => {
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
  test("a machine takes its volume, nobody else does, and destroying it gives the volume back", async (t) => {
    const { ask, volumes } = await open(t);
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

  test("of twenty machines at once exactly one gets the volume (V5)", async (t) => {
    const { ask, volumes } = await open(t);
    const { id } = (await volumes("POST", { name: "data" })).body;
    const made = await Promise.all(
      Array.from({ length: 20 }, () => ask("POST /v1/apps/web/machines", machine(id, { skip_launch: true }))),
    );
    const winners = made.filter(({ status }) => status === 200);
    assert.equal(winners.length, 1);
    assert.ok(made.every(({ status }) => status === 200 || status === 412));
    assert.equal((await volumes(`GET /${id}`)).body.attached_machine_id, winners[0]?.body.id);
  });

  test("a volume of another app, another organization, a deleted one: none can be mounted (V5)", async (t) => {
    const { ask, volumes } = await open(t);
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

suite("volumes: snapshots", () => {
  test("on demand: `prepare`, then listed with size and digest; restored as `restoring`, then `created`", async (t) => {
    const { volumes, until } = await open(t);
    const { id } = (await volumes("POST", { name: "data", size_gb: 1, snapshot_retention: 7 })).body;
    const { status, body } = await volumes(`POST /${id}/snapshots`);
    assert.equal(status, 200);
    const { backup } = body.Msg;
    assert.deepEqual(
      [backup.state, backup.type, backup.volume_id, backup.finished_at],
      ["prepare", "BACKUP_TYPE_ON_DEMAND", id, null],
    );
    const [snapshot] = (await until(`GET /${id}/snapshots`, (answer) => answer.body.length === 1)).body;
    assert.equal(snapshot.id, backup.graph_id);
    assert.equal(snapshot.retention_days, 7);
    assert.match(snapshot.digest, /^sha256:[0-9a-f]{64}$/);
    assert.equal(typeof snapshot.size, "number");

    const wish = { name: "copy", region: "local", snapshot_id: snapshot.id };
    const restored = (await volumes("POST", wish)).body;
    assert.deepEqual([restored.state, restored.size_gb, restored.blocks], ["restoring", 1, 0]);
    await until(`GET /${restored.id}`, (answer) => answer.body.state === "created");
    const small = await volumes("POST", { ...wish, name: "small", size_gb: 1, encrypted: false });
    assert.match(small.body.error, /body\.encrypted cannot be false/);

    await volumes(`DELETE /${id}`);
    assert.equal((await volumes(`GET /${id}/snapshots`)).body.length, 1, "those of a deleted volume stay");
    assert.equal((await volumes(`DELETE /${id}/snapshots/${snapshot.id}`)).status, 200);
    assert.deepEqual((await volumes(`GET /${id}/snapshots`)).body, []);
  });

  test("a fork is a volume of its own, of the same size or larger", async (t) => {
    const { volumes } = await open(t);
    const { id } = (await volumes("POST", { name: "data", size_gb: 2 })).body;
    const fork = await volumes("POST", { name: "fork", source_volume_id: id });
    assert.deepEqual([fork.status, fork.body.state, fork.body.size_gb], [200, "created", 2]);
    const larger = await volumes("POST", { name: "larger", source_volume_id: id, size_gb: 4 });
    assert.equal((await volumes(`GET /${larger.body.id}`)).body.bytes_total, 4 * 1024 ** 3);
    assert.equal((await volumes("POST", { name: "small", source_volume_id: id, size_gb: 1 })).status, 400);
  });

  test("daily, kept for as long as they are to be, and the data of a deleted volume go in their time", async (t) => {
    const clock = virtualClock();
    const data_dir = tempDir(t);
    const env = { HANGAR_DATA_DIR: data_dir, HANGAR_VOLUME_UNDELETE_HOURS: "48" };
    const platform = await testPlatform(t, { HANGAR_DRIVER: "sim", ...env }, { clock });
    const { ask } = platform;
    const DAY = 24 * 3600 * 1000;
    const settled = async (done: () => Promise<boolean>, what: string): Promise<void> => {
      for (let i = 0; i < 400; i++) {
        if (await done()) return;
        await clock.advance(1000);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      assert.fail(what);
    };
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const creating = ask("POST /v1/apps/web/volumes", { body: { name: "data", snapshot_retention: 1 } });
    const { id } = (await creating).body;
    const list = async () => (await ask(`GET /v1/apps/web/volumes/${id}/snapshots`)).body;
    assert.deepEqual(await list(), []);
    clock.jump(DAY + 1000);
    await settled(async () => (await list()).length === 1, "the daily snapshot is there");
    assert.equal((await list())[0].kind, "daily");
    clock.jump(DAY + 1000);
    await settled(async () => {
      const [newest, ...older] = await list();
      return newest && older.length === 0 && Date.parse(newest.created_at) > clock.now() - DAY / 2;
    }, "the old one is gone and a new one is there");
    await ask(`DELETE /v1/apps/web/volumes/${id}`);
    clock.jump(DAY);
    await clock.advance(60_000);
    assert.equal((await ask(`GET /v1/apps/web/volumes/${id}`)).status, 200, "it could be taken back");
    clock.jump(DAY);
    await settled(async () => (await ask(`GET /v1/apps/web/volumes/${id}`)).status === 404, "nothing of it is left");
  });
});

suite("volumes: growing by themselves", () => {
  test("a volume grows when its machine's threshold is reached, by so much, up to its limit", async (t) => {
    const clock = virtualClock();
    const platform = await testPlatform(t, { HANGAR_DRIVER: "sim" }, { clock });
    const { ask, data_dir } = platform;
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const { id } = (await ask("POST /v1/apps/web/volumes", { body: { name: "data", size_gb: 1 } })).body;
    const mount = { volume: id, path: "/data", extend_threshold_percent: 1, add_size_gb: 2, size_gb_limit: 4 };
    await ask("POST /v1/apps/web/machines", { body: { config: { image: "x", mounts: [mount] }, skip_launch: true } });
    const size = async (): Promise<number> => (await ask(`GET /v1/apps/web/volumes/${id}`)).body.size_gb;
    const minute = async (): Promise<void> => {
      for (let i = 0; i < 12; i++) {
        await clock.advance(5000);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await minute();
    assert.equal(await size(), 1, "it is empty");
    // What a program in the machine would have written: 6 % of a gigabyte.
    const image = openSync(join(data_dir, "volumes/volumes", `${id}.img`), "r+");
    for (let i = 0; i < 64; i++) writeSync(image, Buffer.alloc(1 << 20, 1));
    closeSync(image);
    await minute();
    assert.ok((await size()) >= 3, "by two, within a minute");
    for (let i = 0; i < 10 && (await size()) < 4; i++) await minute();
    assert.equal(await size(), 4, "then only up to its limit");
    await minute();
    assert.equal(await size(), 4);
  });
});

suite("volumes: what takes room", () => {
  test("df and gc tell the truth, and a preview removes nothing", async (t) => {
    const { ask, volumes, data_dir } = await open(t);
    const { id } = (await volumes("POST", { name: "data", size_gb: 1 })).body;
    await volumes(`DELETE /${id}`);
    writeFileSync(join(data_dir, "volumes/volumes/vol_unknown.img"), "left behind");
    const { status, body } = await ask("GET /v1/platform/disk");
    assert.equal(status, 200);
    assert.equal(body.driver, "sim");
    assert.equal(body.volumes[0].state, "destroyed");
    const collect = async (wish: object) => (await ask("POST /v1/platform/disk/collect", { body: wish })).body;
    const preview = await collect({ deleted: true });
    assert.deepEqual(preview.waste.map((one: { kind: string }) => one.kind).toSorted(), [
      "deleted volume",
      "unknown image",
    ]);
    assert.equal(preview.applied, false);
    assert.deepEqual((await collect({ deleted: true })).waste, preview.waste, "nothing was removed");
    assert.equal((await collect({ apply: true })).waste.length, 1);
    assert.equal((await volumes(`POST /${id}/undelete`)).status, 200, "what can be taken back was left");
    assert.deepEqual((await collect({ deleted: true })).waste, []);
  });
});
