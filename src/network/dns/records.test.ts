import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../../test/support.ts";
import { addressesIn } from "./records.ts";

const name = (text: string): Buffer =>
  Buffer.concat([
    ...text.split(".").map((part) => Buffer.concat([Buffer.of(part.length), Buffer.from(part)])),
    Buffer.of(0),
  ]);

/** A response to a query for `queried`, with records `[owner, type, ttl, data]`. */
function answer(queried: string, records: readonly [string, number, number, Buffer][]): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  const question = Buffer.concat([name(queried), Buffer.of(0, 1, 0, 1)]);
  const written = records.map(([owner, type, ttl_s, data]) => {
    const fixed = Buffer.alloc(10);
    fixed.writeUInt16BE(type, 0);
    fixed.writeUInt16BE(1, 2);
    fixed.writeUInt32BE(ttl_s, 4);
    fixed.writeUInt16BE(data.length, 8);
    // The question's name is pointed at, as servers do.
    return Buffer.concat([owner === queried ? Buffer.of(0xc0, 12) : name(owner), fixed, data]);
  });
  return Buffer.concat([head, question, ...written]);
}

suite("addresses in responses of other name servers", () => {
  test("addresses are found through CNAMEs, with the shortest TTL of the chain", () => {
    const message = answer("api.example", [
      ["api.example", 5, 30, name("cdn.example")],
      ["CDN.example", 1, 300, Buffer.of(192, 0, 2, 7)],
      ["cdn.example", 28, 10, Buffer.from("20010db8000000000000000000000007", "hex")],
    ]);
    assert.deepEqual(addressesIn(message, "api.example"), [
      { address: "192.0.2.7", ttl_s: 30 },
      { address: "2001:db8:0:0:0:0:0:7", ttl_s: 10 },
    ]);
  });

  test("an address of a name that was not queried is ignored", () => {
    const message = answer("api.example", [["evil.example", 1, 300, Buffer.of(192, 0, 2, 7)]]);
    assert.deepEqual(addressesIn(message, "api.example"), []);
  });

  test("random bytes are parsed or ignored as DNS responses", (t) => {
    const choose = random(seed(t));
    const good = answer("api.example", [["api.example", 1, 300, Buffer.of(192, 0, 2, 7)]]);
    for (let i = 0; i < runs(5000); i++) {
      const bytes = Buffer.from(good);
      for (let n = 0; n < 3; n++) bytes[Math.floor(choose() * bytes.length)] = Math.floor(choose() * 256);
      addressesIn(bytes.subarray(0, Math.floor(choose() * (bytes.length + 1))), "api.example");
    }
  });
});
