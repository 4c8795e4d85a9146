/** Files of sprites in real machines: no path, link or race leaves a sprite, and nothing is needed in its image. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, type TestContext, test } from "node:test";
import { type Sprite, SpritesClient } from "@fly/sprites";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import type { OpenedSprite } from "../sprite-commands.ts";
import { spriteFilesSuite } from "../sprite-files.ts";
import { until } from "../support.ts";
import { type RealPlatform, realPlatform } from "./runc-support.ts";

const missing = realMachinesMissing();
const ends: (() => Promise<void>)[] = [];
let platform: RealPlatform | undefined;
let made = 0;

/** One platform for all tests of this file. */
async function started(): Promise<RealPlatform> {
  if (platform) return platform;
  platform = realPlatform(
    { after: (end) => void ends.push(end as () => Promise<void>) },
    { HANGAR_SPRITE_IMAGE: "box" },
  );
  busyboxLayer(join(platform.images, "box"));
  const bare = join(platform.images, "bare", "bin");
  mkdirSync(bare, { recursive: true });
  cpSync("/usr/bin/busybox", join(bare, "sleep"));
  await platform.start();
  return platform;
}

async function open(t: TestContext, image?: string): Promise<OpenedSprite> {
  const { data_dir } = await started();
  const base_url = readFileSync(join(data_dir, "address"), "utf8").trim();
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  const client = new SpritesClient(token, { baseURL: base_url });
  const name = `files-${++made}`;
  const body = JSON.stringify({ name, config: { ram_mb: 256, storage_gb: 1 }, ...(image ? { image } : {}) });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await fetch(`${base_url}/v1/sprites`, { method: "POST", headers, body });
  assert.equal(answer.status, 201, await answer.text());
  t.after(() => client.deleteSprite(name).catch(() => {}));
  return { base_url, token, sprite: client.sprite(name) };
}

after(async () => {
  for (const end of ends.reverse()) await end();
});

spriteFilesSuite("in real machines", open, missing);

const sh = async (sprite: Sprite, script: string): Promise<string> =>
  String((await sprite.execFile("sh", ["-c", script])).stdout);

suite("files of sprites in real machines", { skip: missing }, () => {
  test("an image with one program and nothing else has all of it", async (t) => {
    const { sprite } = await open(t, "bare");
    const fs = sprite.filesystem("/");
    await fs.writeFile("/new/folder/file", "text");
    await fs.copyFile("/new", "/copy", { recursive: true });
    await fs.chmod("/copy/folder/file", 0o600);
    assert.equal(await fs.readFile("/copy/folder/file", "utf8"), "text");
    assert.deepEqual(await fs.readdir("/new", { recursive: true }), ["folder", "folder/file"]);
    await fs.rm("/new", { recursive: true });
    await assert.rejects(fs.stat("/new"), { code: "ENOENT" });
  });

  test("links to everywhere end in the sprite", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    const secret = join(tmpdir(), `hangar-secret-${process.pid}`);
    writeFileSync(secret, "of the host");
    t.after(() => rmSync(secret, { force: true }));
    const up = "../".repeat(40);
    await sh(
      sprite,
      `mkdir -p /srv; cd /srv; ln -s ${secret} abs; ln -s ${up}${secret} up; ln -s /proc/1/root${secret} proc; ` +
        `ln -s ${up} top; ln -s loop loop; ln -s /etc/passwd users; mkfifo pipe; ln -s /proc/self/fd/0 fd`,
    );
    const links = ["abs", "up", "proc", `top${secret}`, "loop", "pipe", "fd"];
    for (const link of links) await assert.rejects(fs.readFile(link), link);
    // Such a write makes a file of the sprite where the link points to, or is refused.
    for (const link of links) await fs.writeFile(link, "of the sprite").catch(() => {});
    assert.equal(readFileSync(secret, "utf8"), "of the host");
    assert.equal(await fs.readFile(secret, "utf8"), "of the sprite");
    assert.equal(await fs.readFile("users", "utf8"), await sh(sprite, "cat /etc/passwd"));
    assert.equal(await fs.readFile(`${up}etc/passwd`, "utf8"), await sh(sprite, "cat /etc/passwd"));
    const listed = await fs.readdir("/srv", { withFileTypes: true });
    assert.ok(listed.find((entry) => entry.name === "users")?.isSymbolicLink());
    await fs.rm("/srv", { recursive: true });
    assert.match(await sh(sprite, "cat /etc/passwd"), /^root:/);
  });

  test("what is swapped for a link while a call runs is neither followed nor harmed", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await sh(sprite, "mkdir -p /srv/a /keep; echo kept > /keep/file; chmod 644 /keep/file");
    const swap =
      "cd /srv; ln -s /keep link; echo on; while true; do mkdir d 2>/dev/null; mv d e 2>/dev/null; cp -P link d 2>/dev/null; " +
      "rm -rf d e 2>/dev/null; done";
    const racing = sprite.spawn("sh", ["-c", swap]);
    racing.on("error", () => {});
    await once(racing.stdout, "data");
    for (let n = 0; n < 12; n++) {
      await fs.rm("d", { recursive: true }).catch(() => {});
      await fs.chmod("/srv", 0o700, { recursive: true }).catch(() => {});
      await fs.chown("/srv", { uid: 1000, recursive: true }).catch(() => {});
      await fs.copyFile("/srv", "/copied", { recursive: true }).catch(() => {});
      await fs.rm("/copied", { recursive: true, force: true }).catch(() => {});
    }
    racing.kill("SIGKILL");
    await racing.wait();
    assert.equal(await sh(sprite, "cat /keep/file; stat -c '%a %u' /keep/file"), "kept\n644 0\n");
  });

  test("kill -9 of the platform during a write: the old file stays, and nothing of the new one", async (t) => {
    const { sprite, base_url, token } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.writeFile("kept", "old");
    const headers = { authorization: `Bearer ${token}`, "content-length": 100_000_000 };
    const url = `${base_url}/v1/sprites/${sprite.name}/fs/write?path=/srv/kept`;
    const upload = request(url, { method: "PUT", headers });
    upload.on("error", () => {});
    await new Promise<void>((sent) => void upload.write(Buffer.alloc(4_000_000, "new"), () => sent()));
    const real = await started();
    await real.kill();
    upload.destroy();
    await real.start();
    const again = new SpritesClient(token, { baseURL: readFileSync(join(real.data_dir, "address"), "utf8").trim() });
    const files = again.sprite(sprite.name).filesystem("/srv");
    assert.equal(await files.readFile("kept", "utf8"), "old");
    await until("nothing is left", async () => (await files.readdir(".")).join() === "kept");
  });

  test("a full disk is said, and the old file stays", async (t) => {
    const { sprite, base_url, token } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.writeFile("kept", "old");
    await sh(sprite, "dd if=/dev/zero of=/fill bs=1M count=2000 2>/dev/null; true");
    const answer = await fetch(`${base_url}/v1/sprites/${sprite.name}/fs/write?path=/srv/kept`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}` },
      body: Buffer.alloc(8_000_000, "new"),
    });
    const { code, error } = (await answer.json()) as Record<string, string>;
    assert.deepEqual([answer.status, code], [422, "ENOSPC"], error);
    assert.equal(await fs.readFile("kept", "utf8"), "old");
  });
});
