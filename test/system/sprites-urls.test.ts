/** URLs of sprites in real machines: a web server of BusyBox behind the edge proxy, judged by curl. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { freePort } from "#proxy/fixtures.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { shell, until } from "../support.ts";
import { realPlatform } from "./runc-support.ts";

suite("URLs of sprites in real machines", { skip: realMachinesMissing() }, () => {
  test("curl reaches a server on loopback with a token, and after the sprite slept", async (t) => {
    const port = await freePort();
    const platform = realPlatform(t, { HANGAR_SPRITE_IMAGE: "box", HANGAR_SPRITE_URL_PORT: String(port) });
    busyboxLayer(join(platform.images, "box"));
    await platform.start();
    const base_url = readFileSync(join(platform.data_dir, "address"), "utf8").trim();
    const token = readFileSync(join(platform.data_dir, "token"), "utf8").trim();
    const client = new SpritesClient(token, { baseURL: base_url });
    const sprite = await client.createSprite("web", { config: { ramMB: 256, storageGB: 1 } });
    const page = "x".repeat(3_000_000);
    await sprite.filesystem("/").writeFile("/www/page", page);
    const { hostname } = new URL(sprite.url ?? "");
    const curl = (more: string) =>
      shell(
        `curl --silent --resolve ${hostname}:${port}:127.0.0.1 --write-out '\\n%{http_code}' ${more} ${sprite.url}/page`,
        {},
      );
    const own = `--header 'authorization: Bearer ${token}'`;
    await until("the port is open", async () => (await curl("")).stdout.endsWith("401"));
    assert.match((await curl(own)).stdout, /no program in the sprite web listens(.|\n)*502$/);
    await sprite.execFile("sh", ["-c", "httpd -p 127.0.0.1:7001 -h /www"]);
    const answer = await curl(own);
    assert.equal(answer.stdout, `${page}\n200`);

    const { machine_id, app_name } = (await (
      await fetch(`${base_url}/v1/sprites/web`, { headers: { authorization: `Bearer ${token}` } })
    ).json()) as { machine_id: string; app_name: string };
    const asleep = await fetch(`${base_url}/v1/apps/${app_name}/machines/${machine_id}/suspend`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(asleep.status, 200);
    await until("it sleeps", async () => (await client.getSprite("web")).status !== "running");
    if ((await client.getSprite("web")).status === "warm") assert.equal((await curl(own)).stdout, `${page}\n200`);
    else assert.match((await curl(own)).stdout, /502$/);
  });
});
