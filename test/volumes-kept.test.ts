/** The Volumes API on the sim disk: snapshots, growing, what takes room. */
import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { VOLUME_LIMITS } from "#volumes/limits.ts";
import { testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";
import { openApi } from "./volumes-api.ts";

suite("volumes: snapshots", () => {
  test("a snapshot on demand is prepared, listed with size and digest, and restored", async (t) => {
    const { volumes, until } = await openApi(t);
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

  test("a fork is an independent volume of the same size or larger", async (t) => {
    const { volumes } = await openApi(t);
    const { id } = (await volumes("POST", { name: "data", size_gb: 2 })).body;
    const fork = await volumes("POST", { name: "fork", source_volume_id: id });
    assert.deepEqual([fork.status, fork.body.state, fork.body.size_gb], [200, "created", 2]);
    const larger = await volumes("POST", { name: "larger", source_volume_id: id, size_gb: 4 });
    assert.equal((await volumes(`GET /${larger.body.id}`)).body.bytes_total, 4 * 1024 ** 3);
    assert.equal((await volumes("POST", { name: "small", source_volume_id: id, size_gb: 1 })).status, 400);
  });

  test("daily snapshots are kept for their retention, and a deleted volume's data are removed in time", async (t) => {
    const clock = virtualClock();
    const data_dir = tempDir();
    const env = { HANGAR_DATA_DIR: data_dir, HANGAR_VOLUME_UNDELETE_HOURS: "48" };
    const platform = await testPlatform(t, env, { clock });
    const { ask } = platform;
    const DAY = 24 * 3600 * 1000;
    const settled = (done: () => Promise<boolean>, what: string): Promise<boolean> =>
      until(what, async () => {
        if (await done()) return true;
        await clock.advance(1000);
        return false;
      });
    /** Nothing is deleted by a clock that has just jumped; it must have kept pace for a while. */
    const trusted = async (): Promise<void> => {
      for (let ms = 0; ms <= VOLUME_LIMITS.steady_clock_ms; ms += VOLUME_LIMITS.upkeep_ms) {
        await clock.advance(VOLUME_LIMITS.upkeep_ms);
        await ask("GET /v1/apps");
      }
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
    await trusted();
    await settled(async () => {
      const [newest, ...older] = await list();
      return newest && older.length === 0 && Date.parse(newest.created_at) > clock.now() - DAY / 2;
    }, "the old one is gone and a new one is there");
    await ask(`DELETE /v1/apps/web/volumes/${id}`);
    clock.jump(DAY);
    await clock.advance(60_000);
    assert.equal((await ask(`GET /v1/apps/web/volumes/${id}`)).status, 200, "it could be taken back");
    clock.jump(DAY);
    await trusted();
    await settled(async () => (await ask(`GET /v1/apps/web/volumes/${id}`)).status === 404, "nothing of it is left");
  });
});

suite("volumes: autoextend", () => {
  test("a volume grows at its machine's threshold, by the configured size, up to its limit", async (t) => {
    const clock = virtualClock();
    const platform = await testPlatform(t, {}, { clock });
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
    // The minute is the clock's; the box may need longer for what was begun in it.
    await until("by two, within a minute", async () => (await size()) >= 3);
    await until("then up to its limit", async () => {
      await minute();
      return (await size()) >= 4;
    });
    assert.equal(await size(), 4, "and no further");
    await minute();
    assert.equal(await size(), 4);
  });
});

suite("volumes: autoextend by percent", () => {
  test("a volume grows by add_size_percent, at least min_add_size_gb, up to the limit, with an event", async (t) => {
    const clock = virtualClock();
    const platform = await testPlatform(t, {}, { clock });
    const { ask, data_dir } = platform;
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const made: [string, number, number, string][] = [];
    for (const [name, more, first, last] of [
      ["share", { add_size_percent: 150, size_gb_limit: 4 }, 3, 4],
      ["least", { add_size_percent: 10, min_add_size_gb: 5, size_gb_limit: 6 }, 6, 6],
    ] as const) {
      const { id } = (await ask("POST /v1/apps/web/volumes", { body: { name, size_gb: 1 } })).body;
      const mounts = [{ volume: id, path: "/data", extend_threshold_percent: 1, ...more }];
      const machine = (await ask("POST /v1/apps/web/machines", { body: { config: { image: "x", mounts } } })).body.id;
      const image = openSync(join(data_dir, "volumes/volumes", `${id}.img`), "r+");
      for (let i = 0; i < 64; i++) writeSync(image, Buffer.alloc(1 << 20, 1));
      closeSync(image);
      made.push([id, first, last, machine]);
    }
    const size = async (id: string): Promise<number> => (await ask(`GET /v1/apps/web/volumes/${id}`)).body.size_gb;
    const grows = (id: string, to: number): Promise<unknown> =>
      until(`${id} has ${to} GB`, async () => {
        await clock.advance(5000);
        await new Promise((resolve) => setTimeout(resolve, 10));
        return (await size(id)) >= to;
      });
    for (const [id, first, last, machine] of made) {
      await grows(id, last);
      assert.equal(await size(id), last);
      const { events } = (await ask(`GET /v1/apps/web/machines/${machine}`)).body;
      const reasons = events
        .filter(({ type }: { type: string }) => type === "volume_extended")
        .map(({ request }: { request: { reason: string } }) => request.reason);
      assert.match(reasons.at(-1), new RegExp(`volume ${id} grew from 1 to ${first} GB`));
      assert.equal(
        (await ask(`GET /v1/apps/web/volumes/${id}`)).body.needs_restart,
        false,
        "the sim disk grows in use",
      );
    }
  });
});

suite("volumes: disk usage", () => {
  test("df and gc report real usage, and a preview removes nothing", async (t) => {
    const { ask, volumes, data_dir } = await openApi(t);
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
