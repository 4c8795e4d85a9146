/** Files of sprites against the simulated driver, whose machines have a folder each that the real helper works in. */
import { SpritesClient } from "@fly/sprites";
import { testPlatform } from "./platform.ts";
import { spriteFilesSuite } from "./sprite-files.ts";

spriteFilesSuite("simulated", async (t) => {
  const { base_url, token } = await testPlatform(t);
  const sprite = await new SpritesClient(token, { baseURL: base_url }).createSprite("one");
  return { base_url, token, sprite };
});
