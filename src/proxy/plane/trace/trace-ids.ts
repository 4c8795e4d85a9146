import { randomFillSync } from "node:crypto";

const POOL = Buffer.alloc(4096);
let at = POOL.length;

/** Random hex digits; the pool is refilled rarely, because each call of the generator costs more than the digits. */
function randomHex(bytes: number): string {
  if (at + bytes > POOL.length) {
    randomFillSync(POOL);
    at = 0;
  }
  at += bytes;
  const id = POOL.toString("hex", at - bytes, at);
  // An id of zeros is invalid.
  return /[^0]/.test(id) ? id : randomHex(bytes);
}

export const newTraceId = (): string => randomHex(16);
export const newSpanId = (): string => randomHex(8);
