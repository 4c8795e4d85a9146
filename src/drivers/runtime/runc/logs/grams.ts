/**
 * Which pieces of text a block may contain, so that a search for an id or a rare word decompresses only blocks that may
 * have it. A quarter of all runs of five bytes, chosen by their hash, set a bit each; a block that lacks the bit of one that
 * is looked for does not contain the text. Unlike an index of words this is right for text inside of words too.
 */
import { KIND_AT, MESSAGE_AT, STREAM_AT } from "./parse.ts";

const GRAM_BYTES = 5;
/** One bit for so many bytes of text at most: a third of the bits is set in lines full of ids then. */
const TEXT_BYTES_PER_BIT = 4;
const LEAST_BITS = 1024;
const NEWLINE = 10;
const PART = "P".charCodeAt(0);
/** Bytes in lower case. */
const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte));

/** The bits of a block. A line in parts, which begins in one and ends in another of the same stream, counts as one. */
export function gramsOf(bytes: Buffer): Buffer {
  let bits = LEAST_BITS;
  while (bits * TEXT_BYTES_PER_BIT < bytes.length) bits *= 2;
  const set = Buffer.alloc(bits / 8);
  const begun: Record<number, Window> = {};
  for (let at = 0, end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
    const stream = bytes[at + STREAM_AT] ?? 0;
    const window = setGrams(set, bytes.subarray(Math.min(at + MESSAGE_AT, end), end), begun[stream]);
    if (bytes[at + KIND_AT] === PART) begun[stream] = window;
    else delete begun[stream];
    at = end + 1;
  }
  return folded(set);
}

/** The last bytes of a text, and how many there were. */
interface Window {
  four: number;
  count: number;
}

function setGrams(set: Buffer, bytes: Uint8Array, begun?: Window): Window {
  const mask = set.length * 8 - 1;
  let four = begun?.four ?? 0;
  const before = begun?.count ?? 0;
  for (let at = 0; at < bytes.length; at++) {
    const fifth = four >>> 24;
    four = (four << 8) | (LOWER[bytes[at] as number] as number);
    const hash = hashOf(four, fifth);
    if (!isChosen(hash) || before + at < GRAM_BYTES - 1) continue;
    const bit = bitOf(hash) & mask;
    set[bit >>> 3] = (set[bit >>> 3] as number) | (1 << (bit & 7));
  }
  return { four, count: before + bytes.length };
}

/** Half as large as long as no more than half of the bits are set: plain text has few. */
function folded(set: Buffer): Buffer {
  const half = set.length / 2;
  if (set.length * 8 <= LEAST_BITS) return set;
  const smaller = Buffer.alloc(half);
  let count = 0;
  for (let at = 0; at < half; at++) {
    const byte = (set[at] as number) | (set[at + half] as number);
    smaller[at] = byte;
    for (let rest = byte; rest > 0; rest &= rest - 1) count++;
  }
  return count * 2 <= half * 8 ? folded(smaller) : set;
}

/** Of five bytes. */
const hashOf = (four: number, fifth: number): number =>
  (Math.imul(four, 0x9e3779b1) + Math.imul(fifth, 0x85ebca6b)) | 0;

const isChosen = (hash: number): boolean => hash >>> 30 === 0;

function bitOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}

/** The hashes of texts that a wanted line contains, all of them, in whatever case. */
export function wantedGrams(texts: readonly string[]): number[] {
  const hashes = new Set<number>();
  for (const text of texts) {
    let [four, fifth] = [0, 0];
    for (const [at, byte] of Buffer.from(text).entries()) {
      fifth = four >>> 24;
      four = (four << 8) | (LOWER[byte] as number);
      const hash = hashOf(four, fifth);
      if (at >= GRAM_BYTES - 1 && isChosen(hash)) hashes.add(bitOf(hash));
    }
  }
  return [...hashes];
}

export function mayContain(set: Uint8Array, wanted: readonly number[]): boolean {
  const mask = set.length * 8 - 1;
  return wanted.every((hash) => ((set[(hash & mask) >>> 3] as number) & (1 << (hash & 7))) !== 0);
}
