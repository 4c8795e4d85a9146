import assert from "node:assert/strict";
import { suite, test } from "node:test";
import snappy from "snappy";
import { random, seed } from "../../../../test/support.ts";
import { SnappyDecoder } from "./snappy-decode.ts";

/** Bytes that mostly repeat what stood a few places before. */
function repetitive(roll: () => number, most: number, letters: number): Buffer {
  const back = Math.floor(roll() * 40);
  const bytes = Buffer.alloc(Math.floor(roll() * most));
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = i > back && roll() < 0.7 ? (bytes[i - back] ?? 0) : Math.floor(roll() * letters);
  }
  return bytes;
}

suite("snappy decoder", () => {
  test("output of another snappy implementation is decoded, from noise to long repeats", (t) => {
    const roll = random(seed(t));
    for (let run = 0; run < 300; run++) {
      const plain = repetitive(roll, run < 290 ? 5000 : 300_000, run % 2 === 0 ? 256 : 3);
      assert.ok(plain.equals(new SnappyDecoder(snappy.compressSync(plain)).unpack()));
    }
  });

  test("truncated or changed input is refused without access out of bounds", (t) => {
    const roll = random(seed(t));
    const packed = snappy.compressSync(Buffer.from("metrics and again metrics, ".repeat(40)));
    for (let run = 0; run < 5000; run++) {
      const bytes = Uint8Array.from(packed.subarray(0, 1 + Math.floor(roll() * packed.length)));
      bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      try {
        const body = new SnappyDecoder(bytes);
        if (body.size < 1e6) assert.equal(body.unpack().length, body.size);
      } catch (thrown) {
        assert.equal(thrown instanceof Error ? thrown.name : "", "BadSnappy", String(thrown));
      }
    }
  });
});
