import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { random } from "../../../test/support.ts";
import { textOf } from "./text-cache.ts";

describe("text cache", () => {
  it("reads what a decoder of UTF-8 reads, however often and in whatever order", () => {
    const roll = random(7);
    const texts = Array.from({ length: 20_000 }, (_, i) => {
      const length = Math.floor(roll() * 80);
      // Every third has bytes of other scripts, or such as are no UTF-8.
      const most = i % 3 === 0 ? 256 : 128;
      return Uint8Array.from({ length }, () => Math.floor(roll() * most));
    });
    const all = Buffer.concat(texts);
    for (let round = 0; round < 2; round++) {
      let at = 0;
      for (const { length } of texts) {
        const end = at + length;
        assert.equal(textOf(all, at, end), all.toString("utf8", at, end));
        at = end;
      }
    }
  });

  it("tells short texts apart that share a place", () => {
    // More texts than places: some share one.
    const texts = Array.from({ length: 10_000 }, (_, i) => `value-${i}`);
    const bytes = texts.map((text) => Buffer.from(text));
    for (let round = 0; round < 2; round++)
      assert.deepEqual(
        bytes.map((text) => textOf(text, 0, text.length)),
        texts,
      );
  });
});
