import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts secrets at rest. A sealed value opens only with the same key and for the same `place`, so a value copied to
 * another row does not open there. Layout: version (1) · nonce (12) · AES-256-GCM ciphertext · tag (16).
 */
export class Sealer {
  readonly #key: Buffer;

  constructor(key: Uint8Array) {
    if (key.length !== 32) throw new Error("the master key must be 32 bytes");
    this.#key = Buffer.from(key);
  }

  seal(place: string, plain: Uint8Array | string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce).setAAD(Buffer.from(place));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([Buffer.of(VERSION), nonce, body, cipher.getAuthTag()]);
  }

  /** Throws when the value was modified, belongs to another place, or was sealed with another key. */
  open(place: string, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    if (bytes[0] !== VERSION || bytes.length < 1 + NONCE_BYTES + TAG_BYTES) throw new Error("not a sealed value");
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", this.#key, nonce)
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const body = bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]);
  }

  /** Derives a key for one purpose, which does not reveal the master key. */
  derive(purpose: string): Buffer {
    return createHmac("sha256", this.#key).update(`hangar:${purpose}`).digest();
  }
}
