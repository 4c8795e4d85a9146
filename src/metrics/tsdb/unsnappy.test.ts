import assert from "node:assert/strict";
import { suite, test } from "node:test";
import snappy from "snappy";
import { random, seed } from "../../../test/support.ts";
import { Unsnappy } from "./unsnappy.ts";

suite("unpacking snappy", () => {
  test("gives back what another implementation packed, from noise to long repeats", (t) => {
    const roll = random(seed(t));
    for (let run = 0; run < 300; run++) {
      const letters = 1 + Math.floor(roll() * (run % 2 === 0 ? 256 : 3));
      const repeat = Math.floor(roll() * 40);
      const plain = Buffer.alloc(Math.floor(roll() * (run < 290 ? 5000 : 300_000)));
      for (let i = 0; i < plain.length; i++) {
        plain[i] = i > repeat && roll() < 0.7 ? (plain[i - repeat] ?? 0) : Math.floor(roll() * letters);
      }
      assert.ok(plain.equals(new Unsnappy(snappy.compressSync(plain)).unpack()));
    }
  });

  test("refuses what is cut short or changed, and never reads or writes outside", (t) => {
    const roll = random(seed(t));
    const packed = snappy.compressSync(Buffer.from("metrics and again metrics, ".repeat(40)));
    for (let run = 0; run < 5000; run++) {
      const bytes = Uint8Array.from(packed.subarray(0, 1 + Math.floor(roll() * packed.length)));
      bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      try {
        const body = new Unsnappy(bytes);
        if (body.size < 1e6) assert.equal(body.unpack().length, body.size);
      } catch (thrown) {
        assert.equal(thrown instanceof Error ? thrown.name : "", "BadSnappy", String(thrown));
      }
    }
  });
});
