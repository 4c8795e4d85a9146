/**
 * XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM with a nonce of 24 bytes, long enough to be random. A key
 * for each message is derived from the key and the first half of the nonce.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const NONCE_BYTES = 24;
const TAG_BYTES = 16;
const BLOCK_BYTES = 16;

/** One block, which AES-ECB encrypts as it is. */
function aes(key: Uint8Array, block: Uint8Array): Buffer {
  return createCipheriv("aes-256-ecb", key, null).setAutoPadding(false).update(block);
}

/** The first subkey of CMAC: the encrypted zero block, doubled in GF(2^128). */
function subkey(key: Uint8Array): Buffer {
  const block = aes(key, Buffer.alloc(BLOCK_BYTES));
  const carry = (block[0] ?? 0) >> 7;
  const doubled = block.map((byte, at) => (byte << 1) | ((block[at + 1] ?? 0) >> 7));
  const last = BLOCK_BYTES - 1;
  doubled[last] = (doubled[last] ?? 0) ^ (carry * 0x87);
  return Buffer.from(doubled);
}

function messageKey(key: Uint8Array, nonce: Uint8Array): Buffer {
  const mask = subkey(key);
  const halves = [1, 2].map((counter) => {
    const block = Buffer.concat([Buffer.of(0, counter, 0x58, 0), nonce.subarray(0, 12)]);
    return aes(
      key,
      block.map((byte, at) => byte ^ (mask[at] ?? 0)),
    );
  });
  return Buffer.concat(halves);
}

/** The nonce, the ciphertext and its tag. */
export function xaesSeal(
  key: Uint8Array,
  plain: Uint8Array,
  aad: Uint8Array,
  nonce: Uint8Array = randomBytes(NONCE_BYTES),
): Buffer {
  const cipher = createCipheriv("aes-256-gcm", messageKey(key, nonce), nonce.subarray(12)).setAAD(aad);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when it was sealed with another key or other associated data, or was modified. */
export function xaesOpen(key: Uint8Array, sealed: Uint8Array, aad: Uint8Array): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", messageKey(key, nonce), nonce.subarray(12), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(aad).setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    return undefined;
  }
}
