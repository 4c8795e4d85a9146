import assert from "node:assert/strict";
import { test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { openBelow } from "../images/fixtures.ts";
import { Images } from "./images.ts";
import { whileFrozen } from "./kernel.ts";

test("a missing Perl fails the call that needs it, and nothing else", {
  skip: process.platform === "linux" ? false : "the kernel is not Linux",
}, async (t) => {
  const { PATH } = process.env;
  const dir = tempDir();
  const images = new Images(dir);
  await images.start();
  await images.make("points", "p1", 4096, async () => {});
  process.env["PATH"] = "/nowhere";
  t.after(() => {
    process.env["PATH"] = PATH;
  });
  // An unhandled error would end the test, and the platform.
  await assert.rejects(
    whileFrozen(dir, 1000, async () => {}),
    { code: "ENOENT" },
  );
  await assert.rejects(images.reader("points", "p1"), { code: "ENOENT" });
  assert.deepEqual(openBelow(dir), []);
});
