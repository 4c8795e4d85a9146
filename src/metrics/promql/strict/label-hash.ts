import type { Labels } from "../../source.ts";

/**
 * The hash Prometheus 3 has of labels: XXH64 of every name and value with its length in front, names in order of their
 * bytes. `limit_ratio` picks by it, so the same series are picked here and there.
 */

const MASK = (1n << 64n) - 1n;
const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

/** Lengths from here on take three bytes after this one. */
const LONG = 255;

export function labelHash(labels: Labels): bigint {
  const pairs: [Buffer, Buffer][] = [];
  for (let i = 0; i < labels.length; i += 2)
    pairs.push([Buffer.from(labels[i] as string), Buffer.from(labels[i + 1] as string)]);
  pairs.sort(([a], [b]) => Buffer.compare(a, b));
  return xxh64(Buffer.concat(pairs.flat().flatMap((text) => [lengthOf(text), text])));
}

function lengthOf({ length }: Buffer): Buffer {
  return Buffer.from(length < LONG ? [length] : [LONG, length & 255, (length >> 8) & 255, (length >> 16) & 255]);
}

const rotate = (value: bigint, bits: bigint): bigint => ((value << bits) | (value >> (64n - bits))) & MASK;
const round = (into: bigint, input: bigint): bigint => (rotate((into + input * P2) & MASK, 31n) * P1) & MASK;

/** With seed 0. */
export function xxh64(bytes: Buffer): bigint {
  let at = 0;
  let hash = P5;
  if (bytes.length >= 32) {
    const lanes = [(P1 + P2) & MASK, P2, 0n, (MASK + 1n - P1) & MASK];
    for (; at + 32 <= bytes.length; at += 32)
      for (let lane = 0; lane < 4; lane++)
        lanes[lane] = round(lanes[lane] as bigint, bytes.readBigUInt64LE(at + lane * 8));
    hash = lanes.reduce((sum, lane, i) => sum + rotate(lane, [1n, 7n, 12n, 18n][i] as bigint), 0n) & MASK;
    for (const lane of lanes) hash = ((hash ^ round(0n, lane)) * P1 + P4) & MASK;
  }
  hash = (hash + BigInt(bytes.length)) & MASK;
  for (; at + 8 <= bytes.length; at += 8)
    hash = (rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4) & MASK;
  if (at + 4 <= bytes.length) {
    hash = (rotate(hash ^ ((BigInt(bytes.readUInt32LE(at)) * P1) & MASK), 23n) * P2 + P3) & MASK;
    at += 4;
  }
  for (; at < bytes.length; at++) hash = (rotate(hash ^ ((BigInt(bytes[at] as number) * P5) & MASK), 11n) * P1) & MASK;
  hash = ((hash ^ (hash >> 33n)) * P2) & MASK;
  hash = ((hash ^ (hash >> 29n)) * P3) & MASK;
  return hash ^ (hash >> 32n);
}
