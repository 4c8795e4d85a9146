/** Tunnels and listening ports of sprites in real machines, by their own SDK. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { suite, test } from "node:test";
import { type PortWatchEvent, SpritesClient } from "@fly/sprites";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { realPlatform } from "./runc-support.ts";

suite("ports of sprites in real machines", { skip: realMachinesMissing() }, () => {
  test("ports are told as they open and close, and tunnels reach them, on loopback too", async (t) => {
    const platform = realPlatform(t, { HANGAR_SPRITE_IMAGE: "box" });
    busyboxLayer(join(platform.images, "box"));
    await platform.start();
    const baseURL = readFileSync(join(platform.data_dir, "address"), "utf8").trim();
    const client = new SpritesClient(readFileSync(join(platform.data_dir, "token"), "utf8").trim(), { baseURL });
    const sprite = await client.createSprite("ports", { config: { ramMB: 256, storageGB: 1 } });
    const watcher = await sprite.watchPorts();
    t.after(() => watcher.close());
    assert.deepEqual(await watcher.next(), { type: "port_list", ports: [] });
    const seen: PortWatchEvent[] = [];
    watcher.on("event", (event: PortWatchEvent) => seen.push(event));
    const has = (type: string, port: number, address: string): boolean =>
      seen.some((one) => one.type === type && "port" in one && one.port === port && one.address === address);

    const page = "x".repeat(3_000_000);
    await sprite.filesystem("/").writeFile("/www/page", page);
    const inside = sprite.spawn("httpd", ["-f", "-p", "127.0.0.1:7001", "-h", "/www"]);
    const outside = sprite.spawn("httpd", ["-f", "-p", "0.0.0.0:7002", "-h", "/www"]);
    for (const one of [inside, outside]) one.on("error", () => {});
    await until("loopback is told", () => has("port_opened", 7001, "127.0.0.1"));
    await until("the other is told", () => has("port_opened", 7002, "0.0.0.0"));

    for (const remote of [7001, 7002]) {
      const session = await sprite.proxyPort(0, remote);
      t.after(() => session.close());
      const local = session.localAddr();
      const answers = await Promise.all(
        Array.from({ length: 4 }, async () => (await fetch(`http://${local}/page`)).text()),
      );
      for (const answer of answers) assert.equal(answer, page);
    }

    inside.kill("SIGKILL");
    await until("its end is told", () => has("port_closed", 7001, "127.0.0.1"));
    const session = await sprite.proxyPort(0, 7001);
    t.after(() => session.close());
    const refused = connect(Number(session.localAddr()?.split(":").at(-1)), "localhost");
    await once(refused, "close");
  });
});
