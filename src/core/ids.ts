import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "./clock.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LOWER = "0123456789abcdefghijklmnopqrstuvwxyz";

/**
 * Generates identifiers. A request with an Idempotency-Key gets a deterministic source, so that a repeat after a crash
 * generates the same ids and finds what the first run created.
 */
export class Ids {
  readonly #bytes: (count: number) => Uint8Array;
  readonly #now: () => number;

  constructor(bytes: (count: number) => Uint8Array, now: () => number) {
    this.#bytes = bytes;
    this.#now = now;
  }

  /** Time-ordered, 26 characters: instance ids, event ids, request ids, token ids. */
  ulid(): string {
    let time = this.#now();
    let text = "";
    for (let i = 0; i < 10; i++) {
      text = CROCKFORD.charAt(time % 32) + text;
      time = Math.floor(time / 32);
    }
    for (const byte of this.#bytes(16)) text += CROCKFORD.charAt(byte % 32);
    return text;
  }

  /** 16 lower-case alphanumerics: orgs and apps. */
  short(): string {
    let text = "";
    // 252 is the largest multiple of 36 below 256: rejecting higher values keeps letters equally likely.
    while (text.length < 16) {
      for (const byte of this.#bytes(24)) if (byte < 252 && text.length < 16) text += LOWER.charAt(byte % 36);
    }
    return text;
  }

  /** A positive 31-bit number, for clients that need one. */
  numeric(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#bytes(4);
    return ((a & 0x7f) << 24) | (b << 16) | (c << 8) | d || 1;
  }

  /** This many lower-case hex digits: machines (14), lease nonces (32: 128 bits). */
  hex(digits: number): string {
    return Buffer.from(this.#bytes(Math.ceil(digits / 2)))
      .toString("hex")
      .slice(0, digits);
  }

  bytes(count: number): Uint8Array {
    return this.#bytes(count);
  }
}

export function randomIds(clock: Clock): Ids {
  return new Ids(pooledBytes, () => clock.now());
}

/** Random bytes are generated in batches, because each call has a cost and every request has an id. */
const POOL_BYTES = 4096;
let pool = Buffer.alloc(0);

/** Each byte is used once and wiped here. */
function pooledBytes(count: number): Uint8Array {
  if (count > POOL_BYTES) return randomBytes(count);
  if (pool.length < count) pool = randomBytes(POOL_BYTES);
  const bytes = Uint8Array.from(pool.subarray(0, count));
  pool.fill(0, 0, count);
  pool = pool.subarray(count);
  return bytes;
}

/** The same ids for the same seed and time, in the same order. */
export function repeatableIds(seed: Uint8Array, at_ms: number): Ids {
  let calls = 0;
  const bytes = (count: number): Uint8Array => {
    const blocks: Buffer[] = [];
    for (let made = 0; made < count; made += 32) {
      blocks.push(createHmac("sha256", seed).update(`${++calls}`).digest());
    }
    return Buffer.concat(blocks).subarray(0, count);
  };
  return new Ids(bytes, () => at_ms);
}
