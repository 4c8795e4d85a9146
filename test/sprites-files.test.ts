/** Files of sprites against the simulated driver, whose machines have a folder each that the real helper works in. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { SpritesClient } from "@fly/sprites";
import { testPlatform } from "./platform.ts";
import { spriteFilesSuite } from "./sprite-files.ts";
import { until } from "./support.ts";

spriteFilesSuite("simulated", async (t) => {
  const { base_url, token } = await testPlatform(t);
  const sprite = await new SpritesClient(token, { baseURL: base_url }).createSprite("one");
  return { base_url, token, sprite };
});

suite("files of simulated sprites", () => {
  test("they stay when the platform starts again, and go with the sprite", async (t) => {
    const first = await testPlatform(t);
    const before = await new SpritesClient(first.token, { baseURL: first.base_url }).createSprite("one");
    await before.filesystem("/srv").writeFile("kept", "text");
    await first.close();
    const { base_url, token, data_dir } = await testPlatform(t, { HANGAR_DATA_DIR: first.data_dir });
    const sprite = new SpritesClient(token, { baseURL: base_url }).sprite("one");
    assert.equal(await sprite.filesystem("/srv").readFile("kept", "utf8"), "text");
    await sprite.delete();
    await until("its folder is gone", () => readdirSync(join(data_dir, "sim-files")).length === 0);
  });
});
