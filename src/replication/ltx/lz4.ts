/**
 * LZ4 blocks, as LTX pages carry them. The live stream writes blocks of literals only, which every LZ4 reader
 * accepts and which cost nothing; long-lived files (backups) are really compressed.
 *
 * A block is a row of sequences: token (literal count, match length - 4), literals, offset back, more length.
 */
export class Lz4Error extends Error {
  override readonly name = "Lz4Error";
}

/** The largest a block of `length` bytes can become. */
export function lz4Bound(length: number): number {
  return length + Math.ceil(length / 255) + 16;
}

/** Writes a count that did not fit in its half of the token. Returns the next place. */
function writeMore(target: Uint8Array, at: number, count: number): number {
  let [place, rest] = [at, count];
  for (; rest >= 255; rest -= 255) target[place++] = 255;
  target[place++] = rest;
  return place;
}

/** Token and literals, without a match. Returns the next place. */
function writeLiterals(source: Buffer, from: number, to: number, target: Buffer, at: number): number {
  const count = to - from;
  target[at] = Math.min(count, 15) << 4;
  const place = count >= 15 ? writeMore(target, at + 1, count - 15) : at + 1;
  source.copy(target, place, from, to);
  return place + count;
}

/** A block of literals only: no processor time, no saving. Returns how many bytes were written. */
export function lz4Store(source: Buffer, target: Buffer, at: number): number {
  return writeLiterals(source, 0, source.length, target, at) - at;
}

const HASH_BITS = 11;
/** Where each hash was last seen, plus one, so that zero says "never". */
const seen = new Uint32Array(1 << HASH_BITS);
/** The format's rules: a match never starts in the last 12 bytes and never covers the last 5. */
const LAST_MATCH_START = 12;
const LAST_LITERALS = 5;

function wordAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}

/** Where the match of the word at `at` begins, or -1. Remembers `at` for later ones. */
function findMatch(source: Uint8Array, at: number): number {
  const word = wordAt(source, at);
  const hash = Math.imul(word, 0x9e3779b1) >>> (32 - HASH_BITS);
  const candidate = (seen[hash] ?? 0) - 1;
  seen[hash] = at + 1;
  return candidate >= 0 && at - candidate < 65536 && wordAt(source, candidate) === word ? candidate : -1;
}

/** Greedy compression with one hash table. Returns how many bytes were written. */
export function lz4Compress(source: Buffer, target: Buffer, at: number): number {
  seen.fill(0);
  let place = at;
  let literals = 0;
  let i = 0;
  while (i < source.length - LAST_MATCH_START) {
    const match = findMatch(source, i);
    if (match < 0) {
      // The longer nothing matches, the bigger the steps: data that cannot shrink costs little.
      i += 1 + ((i - literals) >> 6);
      continue;
    }
    let length = 4;
    const longest = source.length - LAST_LITERALS - i;
    while (length < longest && source[match + length] === source[i + length]) length++;
    const token = place;
    place = writeLiterals(source, literals, i, target, place);
    target.writeUInt16LE(i - match, place);
    place += 2;
    target[token] = (target[token] ?? 0) | Math.min(length - 4, 15);
    if (length - 4 >= 15) place = writeMore(target, place, length - 4 - 15);
    i += length;
    literals = i;
  }
  return writeLiterals(source, literals, source.length, target, place) - at;
}

/** Reads a block from its start; it is data from elsewhere and may say anything. */
class BlockReader {
  readonly block: Buffer;
  at = 0;

  constructor(block: Buffer) {
    this.block = block;
  }

  byte(): number {
    const byte = this.block[this.at++];
    if (byte === undefined) throw new Lz4Error("the block ends too early");
    return byte;
  }

  /** A count whose first part is half a token. */
  count(half: number): number {
    let total = half;
    for (let byte = 255; half === 15 && byte === 255; ) {
      byte = this.byte();
      total += byte;
    }
    return total;
  }
}

/** Where the content is when it lies in the block, at `from` to `to`, as `lz4Store` puts it; -1 when it does not. */
export function lz4Stored(bytes: Buffer, from: number, to: number, length: number): number {
  const more = length - 15;
  if (bytes[from] !== Math.min(length, 15) << 4) return -1;
  const last = more < 0 ? from : from + 1 + Math.floor(more / 255);
  if (last + 1 + length !== to || (more >= 0 && bytes[last] !== more % 255)) return -1;
  for (let at = from + 1; at < last; at++) if (bytes[at] !== 255) return -1;
  return last + 1;
}

/** Fills `target` exactly from the block, or throws. */
export function lz4Expand(block: Buffer, target: Buffer): void {
  const reader = new BlockReader(block);
  let to = 0;
  while (reader.at < block.length) {
    const token = reader.byte();
    const literals = reader.count(token >>> 4);
    const from = reader.at;
    if (literals > block.length - from || literals > target.length - to) throw new Lz4Error("literals overrun");
    block.copy(target, to, from, from + literals);
    reader.at += literals;
    to += literals;
    if (reader.at === block.length) break;
    const back = reader.byte() | (reader.byte() << 8);
    const length = reader.count(token & 15) + 4;
    if (back === 0 || back > to || length > target.length - to) throw new Lz4Error("match overruns");
    to = repeat(target, to, back, length);
  }
  if (to !== target.length) throw new Lz4Error(`block holds ${to} bytes, not ${target.length}`);
}

/** Copies `length` bytes from `back` before `at`; the two may overlap, then the copy repeats itself. */
function repeat(target: Buffer, at: number, back: number, length: number): number {
  if (back >= length) {
    target.copyWithin(at, at - back, at - back + length);
  } else {
    for (let i = at; i < at + length; i++) target[i] = target[i - back] ?? 0;
  }
  return at + length;
}
