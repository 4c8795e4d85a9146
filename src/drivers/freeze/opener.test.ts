import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import { NodeOpener, type Opener, OpensslOpener, opener, SLICE, TAG_BYTES } from "./opener.ts";

const key = randomBytes(32);
const nonce = randomBytes(12);

/** By Node's cipher, which both kinds have to agree with. */
function sealedOf(plain: Buffer): Buffer {
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

const kinds: Record<string, (key: Uint8Array) => Opener> = {
  "Node's": (key) => new NodeOpener(key),
  "the one in use": opener,
};
for (const [name, make] of Object.entries(kinds))
  suite(`opener: ${name}`, () => {
    test("opens pieces of any length one after the other, and writes nothing behind them", () => {
      using opens = make(key);
      for (const length of [0, 1, 15, 4096, SLICE, SLICE + 1, 3 * SLICE - 7]) {
        const plain = randomBytes(length);
        const room = Buffer.alloc(length + 8, 7);
        assert.equal(opens.open(nonce, sealedOf(plain), room), true);
        assert.ok(room.subarray(0, length).equals(plain), `${length} bytes`);
        assert.deepEqual(room.subarray(length), Buffer.alloc(8, 7));
      }
    });

    const sealed = sealedOf(randomBytes(5000));
    const damaged = (at: number): Buffer => {
      const copy = Buffer.from(sealed);
      copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
      return copy;
    };
    const damages: Record<string, [Uint8Array, Buffer, Buffer]> = {
      "a flipped bit": [key, nonce, damaged(2500)],
      "a flipped bit of the tag": [key, nonce, damaged(sealed.length - 1)],
      "a cut end": [key, nonce, sealed.subarray(0, -1)],
      "nothing but a tag": [key, nonce, sealed.subarray(-TAG_BYTES)],
      "another nonce": [key, randomBytes(12), sealed],
      "another key": [randomBytes(32), nonce, sealed],
    };
    for (const [damage, [key, nonce, sealed]] of Object.entries(damages))
      test(`does not open ${damage}`, () => {
        using opens = make(key);
        assert.equal(opens.open(nonce, sealed, Buffer.alloc(5000)), false);
      });
  });

test("opener: OpenSSL is found in the Node that we bring, and refuses memory that is too small", () => {
  using opens = opener(key);
  assert.ok(opens instanceof OpensslOpener);
  assert.throws(() => opens.open(nonce, sealedOf(randomBytes(100)), Buffer.alloc(99)), RangeError);
  assert.throws(() => opens.open(nonce, Buffer.alloc(TAG_BYTES - 1), Buffer.alloc(99)), RangeError);
  assert.throws(() => opens.open(Buffer.alloc(8), sealedOf(randomBytes(9)), Buffer.alloc(99)), RangeError);
});
