/** Commands in sprites on other hosts, over the way between the platform's processes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { postgresMissing } from "../postgres.ts";
import { startCluster } from "./hosts-support.ts";

suite("sprites on other hosts", { skip: postgresMissing() }, () => {
  test("streams, input, exit codes and signals go both ways", async (t) => {
    const { controls } = await startCluster(t, { controls: 1, hosts: 1 });
    const [control] = controls;
    assert.ok(control);
    const client = new SpritesClient(control.token, { baseURL: control.base_url });
    const sprite = await client.createSprite("far", { config: { ramMB: 256, cpus: 1 } });
    const { stdout, stderr } = await sprite.execFile("sh", ["-c", "echo out; echo err >&2"]);
    assert.deepEqual([stdout, stderr], ["out\n", "err\n"]);
    await assert.rejects(sprite.execFile("sh", ["-c", "exit 42"]), { exitCode: 42 });
    const cat = sprite.spawn("cat");
    let bytes = 0;
    cat.stdout.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    await once(cat, "spawn");
    for (let n = 0; n < 16; n++) cat.stdin.write(Buffer.alloc(64 * 1024, "x"));
    cat.stdin.end();
    assert.equal(await cat.wait(), 0);
    assert.equal(bytes, 1024 * 1024, "much output arrives whole");
    const sleeping = sprite.spawn("sh", ["-c", "echo on; sleep 3600"]);
    await once(sleeping.stdout, "data");
    sleeping.kill("SIGTERM");
    assert.equal(await sleeping.wait(), 143);
    const files = sprite.filesystem("/srv");
    await files.writeFile("far/file", Buffer.alloc(9_000_000, "x"));
    assert.equal((await files.readFile("far/file", null)).length, 9_000_000);
    await assert.rejects(files.readFile("none"), { code: "ENOENT" });
    await sprite.delete();
    assert.deepEqual(await client.listAllSprites(), []);
  });
});
