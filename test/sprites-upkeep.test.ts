/** What a crash leaves of a sprite is made right by the next start; idle sprites sleep, and no used one does. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { WebSocket } from "ws";
import { MovingClock } from "#core/moving-clock.ts";
import { SPRITE_LIMITS } from "#sprites/limits.ts";
import { machineIdOf } from "#sprites/machine.ts";
import type { SpriteStore } from "#sprites/store.ts";
import type { Sprite } from "#sprites/types.ts";
import type { Database } from "#stores/database.ts";
import { sqlSpriteStore } from "#stores/sql/sprites.ts";
import { openSqlite } from "#stores/sqlite/database.ts";
import { testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";

const clientOf = ({ base_url, token }: { base_url: string; token: string }): SpritesClient =>
  new SpritesClient(token, { baseURL: base_url });

/** A platform with a sprite `whole` is closed; `change` does to its database what a crash would have left. */
async function crashed(
  t: TestContext,
  change: (found: { store: SpriteStore; database: Database; whole: Sprite }) => Promise<void>,
): Promise<SpritesClient> {
  const data_dir = tempDir();
  const first = await testPlatform(t, { HANGAR_DATA_DIR: data_dir });
  const sprite = await clientOf(first).createSprite("whole");
  await sprite.execFile("true");
  await first.close();
  const database = await openSqlite(join(data_dir, "hangar.db"));
  const store = sqlSpriteStore(database);
  const [found] = await database.read<{ org_id: string }>("SELECT org_id FROM sprites");
  const whole = (await store.find(found?.org_id ?? "", "whole")) ?? assert.fail("the sprite is stored");
  await change({ store, database, whole });
  await database.close();
  return clientOf(await testPlatform(t, { HANGAR_DATA_DIR: data_dir }));
}

const runs = async (client: SpritesClient, name: string): Promise<boolean> =>
  (await client.sprite(name).execFile("echo", [name])).stdout === `${name}\n`;
const isGone = async (client: SpritesClient, name: string): Promise<boolean> =>
  (await client.listAllSprites()).every((one) => one.name !== name);

suite("sprites: after a crash", () => {
  test("one that was stored without a machine gets it", async (t) => {
    const client = await crashed(t, async ({ store, whole }) => {
      const made = { id: "sprite-half", created_at: whole.created_at };
      const half = { ...made, name: "half", machine_id: machineIdOf(made), state: "creating" } as const;
      assert.equal(await store.insert({ ...whole, ...half }, 9), "inserted");
    });
    await until("its machine is there", () => runs(client, "half").catch(() => false));
    assert.ok(await runs(client, "whole"));
  });

  test("one whose machine was made, but not noted, is noted", async (t) => {
    const client = await crashed(t, async ({ database, whole }) => {
      await database.write([{ sql: "UPDATE sprites SET state = 'creating' WHERE id = ?", args: [whole.id] }]);
    });
    assert.ok(await runs(client, "whole"));
    await client.deleteSprite("whole");
    assert.ok(await isGone(client, "whole"));
  });

  test("one that was being deleted goes, with and without its machine", async (t) => {
    const client = await crashed(t, async ({ store, whole }) => {
      const other = { id: "sprite-other", name: "other", machine_id: "none", state: "creating" } as const;
      await store.insert({ ...whole, ...other }, 9);
      for (const { id } of [whole, other]) assert.ok(await store.putDeleting(id));
    });
    for (const name of ["whole", "other"]) {
      await until(`${name} can be made again`, async () =>
        client.createSprite(name).then(
          () => true,
          () => false,
        ),
      );
      assert.ok(await runs(client, name));
    }
  });
});

suite("sprites: sleep", () => {
  test("an idle sprite sleeps with its memory, grows cold after days, and a used one stays awake", async (t) => {
    const clock = new MovingClock();
    const limits = SPRITE_LIMITS as { sprite_cold_ms: number };
    const { sprite_cold_ms } = limits;
    t.after(() => Object.assign(limits, { sprite_cold_ms }));
    // Days, in which everything else that waits on this clock would be done thousands of times.
    limits.sprite_cold_ms = 2 * SPRITE_LIMITS.sprite_idle_ms;
    const platform = await testPlatform(t, {}, { clock });
    const client = clientOf(platform);
    const sprites = await Promise.all(["idle", "busy"].map((name) => client.createSprite(name)));
    const [idle, busy] = sprites;
    assert.ok(idle && busy);
    await idle.execFile("true");
    // Its connection may take days without an answer for dead.
    const command = busy.spawn("cat", [], { detachable: true });
    command.on("error", () => {});
    await once(command, "spawn");
    command.stdin.write("on");
    await once(command.stdout, "data");
    const status = async (name: string) => (await client.getSprite(name)).status;
    assert.deepEqual([await status("idle"), await status("busy")], ["running", "running"]);
    await clock.advance(SPRITE_LIMITS.sprite_idle_ms + 2 * SPRITE_LIMITS.sprite_sweep_ms);
    await until("it sleeps", async () => (await status("idle")) === "warm");
    assert.equal(await status("busy"), "running");
    assert.ok(await runs(client, "idle"));
    assert.equal(await status("idle"), "running");
    await clock.advance(SPRITE_LIMITS.sprite_idle_ms + 2 * SPRITE_LIMITS.sprite_sweep_ms);
    await until("it sleeps again", async () => (await status("idle")) === "warm");
    await clock.advance(SPRITE_LIMITS.sprite_cold_ms + 2 * SPRITE_LIMITS.sprite_sweep_ms);
    await until("it is cold", async () => (await status("idle")) === "cold");
    assert.ok(await runs(client, "idle"));
    assert.equal(await status("busy"), "running");
    assert.equal((await busy.listSessions()).length, 1);
  });

  test("a sprite is not put to sleep while somebody has a terminal in its machine", async (t) => {
    const clock = new MovingClock();
    const platform = await testPlatform(t, {}, { clock });
    const client = clientOf(platform);
    await client.createSprite("visited");
    assert.ok(await runs(client, "visited"));
    const { app_name, machine_id } = (await platform.ask("GET /v1/sprites/visited")).body;
    const url = `${platform.base_url.replace("http", "ws")}/v1/apps/${app_name}/machines/${machine_id}/terminal`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${platform.token}` } });
    t.after(() => socket.terminate());
    await once(socket, "message");
    const pass = () => clock.advance(SPRITE_LIMITS.sprite_idle_ms + 2 * SPRITE_LIMITS.sprite_sweep_ms);
    await pass();
    assert.equal((await client.getSprite("visited")).status, "running");
    socket.close();
    await once(socket, "close");
    await until("it sleeps when nobody is there", async () => {
      await pass();
      return (await client.getSprite("visited")).status === "warm";
    });
  });
});
