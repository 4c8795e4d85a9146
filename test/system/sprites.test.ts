/** Sprites in real machines, by their own SDK: commands, the disk that stays, sleep, and kill -9 of the platform. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, type TestContext, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { type OpenedSprite, spriteCommandsSuite } from "../sprite-commands.ts";
import { until } from "../support.ts";
import { type RealPlatform, realPlatform } from "./runc-support.ts";

const missing = realMachinesMissing();
const ends: (() => Promise<void>)[] = [];
let platform: RealPlatform | undefined;
let made = 0;

function clientOf({ data_dir }: RealPlatform): { base_url: string; token: string; client: SpritesClient } {
  const base_url = readFileSync(join(data_dir, "address"), "utf8").trim();
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  return { base_url, token, client: new SpritesClient(token, { baseURL: base_url }) };
}

/** One platform for all tests of this file. */
async function started(): Promise<RealPlatform> {
  if (platform) return platform;
  platform = realPlatform(
    { after: (end) => void ends.push(end as () => Promise<void>) },
    { HANGAR_SPRITE_IMAGE: "box" },
  );
  busyboxLayer(join(platform.images, "box"));
  await platform.start();
  return platform;
}

async function open(t: TestContext): Promise<OpenedSprite & { client: SpritesClient }> {
  const { client, ...where } = clientOf(await started());
  const name = `sprite-${++made}`;
  const sprite = await client.createSprite(name, { config: { ramMB: 256, storageGB: 1 } });
  t.after(() => client.deleteSprite(name).catch(() => {}));
  return { ...where, client, sprite };
}

after(async () => {
  for (const end of ends.reverse()) await end();
});

spriteCommandsSuite("in real machines", open, missing);

suite("sprites in real machines", { skip: missing }, () => {
  test("what was written anywhere stays after a restart, a stop and an update", async (t) => {
    const { sprite, client, base_url, token } = await open(t);
    const write = "echo kept > /etc/kept; echo home > /root/home; mkdir -p /srv/deep; echo deep > /srv/deep/file";
    await sprite.execFile("sh", ["-c", write]);
    const read = async () => (await sprite.execFile("cat", ["/etc/kept", "/root/home", "/srv/deep/file"])).stdout;
    await sprite.restart();
    assert.equal(await read(), "kept\nhome\ndeep\n");
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const shown = (await (await fetch(`${base_url}/v1/sprites/${sprite.name}`, { headers })).json()) as Record<
      string,
      string
    >;
    const machine = `${base_url}/v1/apps/${shown["app_name"]}/machines/${shown["machine_id"]}`;
    assert.equal((await fetch(`${machine}/stop`, { method: "POST", headers, body: "{}" })).status, 200);
    await until("it is cold", async () => (await client.getSprite(sprite.name)).status === "cold");
    assert.equal(await read(), "kept\nhome\ndeep\n");
    const body = JSON.stringify({ config: { env: { CHANGED: "1" } } });
    assert.equal((await fetch(machine, { method: "PATCH", headers, body })).status, 200);
    assert.equal(await read(), "kept\nhome\ndeep\n");
  });

  test("what runs in the background sleeps with its memory, and goes on at the next command", async (t) => {
    const { sprite, client, base_url, token } = await open(t);
    const count = "n=0; while true; do n=$((n + 1)); echo $n > /root/count; sleep 1; done";
    await sprite.execFile("sh", ["-c", `(${count}) > /dev/null 2>&1 & echo $! > /root/pid`]);
    const counted = async () => Number((await sprite.execFile("cat", ["/root/count"])).stdout);
    await until("it counts", async () => (await counted().catch(() => 0)) > 1);
    const headers = { authorization: `Bearer ${token}` };
    const shown = await (await fetch(`${base_url}/v1/sprites/${sprite.name}`, { headers })).json();
    const { app_name, machine_id } = shown as Record<string, string>;
    const machine = `${base_url}/v1/apps/${app_name}/machines/${machine_id}`;
    assert.equal((await fetch(`${machine}/suspend`, { method: "POST", headers })).status, 200);
    await until("it is warm", async () => (await client.getSprite(sprite.name)).status === "warm");
    const { stdout } = await sprite.execFile("sh", ["-c", "kill -0 $(cat /root/pid) && cat /root/count"]);
    const before = Number(stdout);
    assert.ok(before > 1);
    await until("it counts on", async () => (await counted()) > before);
  });

  test("its disk is as large as was asked for, and sparse", async (t) => {
    const { sprite } = await open(t);
    const { stdout } = await sprite.execFile("sh", ["-c", "df -m / | tail -n 1"]);
    const [, size = 0, used = 0] = String(stdout).trim().split(/\s+/).map(Number);
    assert.ok(size > 800 && size <= 1024, String(stdout));
    assert.ok(used < 100, String(stdout));
    const full = await sprite.execFile("sh", ["-c", "dd if=/dev/zero of=/fill bs=1M count=2000 2>&1; rm /fill"]);
    assert.match(String(full.stdout), /No space left/);
  });

  test("kill -9 of the platform: sprites and their files are there again, and go on", async (t) => {
    const { sprite } = await open(t);
    await sprite.execFile("sh", ["-c", "echo kept > /kept; sync"]);
    const command = sprite.spawn("sh", ["-c", "echo on; sleep 3600"]);
    command.on("error", () => {});
    await once(command.stdout, "data");
    const real = await started();
    await real.kill();
    await real.start();
    const { client } = clientOf(real);
    const again = client.sprite(sprite.name);
    assert.equal((await again.execFile("cat", ["/kept"])).stdout, "kept\n");
    assert.deepEqual(await again.listSessions(), []);
  });
});
