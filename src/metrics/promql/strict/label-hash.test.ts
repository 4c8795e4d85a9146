import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { labelHash, xxh64 } from "./label-hash.ts";

/** From the tests of XXH64's implementations, seed 0. */
const HASHES: [text: string, hash: bigint][] = [
  ["", 0xef46db3751d8e999n],
  ["a", 0xd24ec4f1a98c6e5bn],
  ["asdf", 0x415872f599cea71en],
  ["Call me Ishmael. Some years ago--never mind how long precisely-", 0x02a2e85470d6fd96n],
];

suite("hash of labels", () => {
  for (const [text, hash] of HASHES) {
    test(`XXH64 of ${text.length} bytes`, () => assert.equal(xxh64(Buffer.from(text)), hash));
  }

  test("names and values are hashed with their lengths in front", () => {
    assert.equal(labelHash(["a", "bc"]), xxh64(Buffer.from("\x01a\x02bc")));
    const long = "x".repeat(300);
    const bytes = [Buffer.from([1, 97, 255, 44, 1, 0]), Buffer.from(long)];
    assert.equal(labelHash(["a", long]), xxh64(Buffer.concat(bytes)));
  });
});
