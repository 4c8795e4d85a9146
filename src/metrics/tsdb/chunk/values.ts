import { type ByteReader, DamagedBytes, putVarint, putZigzag } from "../bytes.ts";

/**
 * Values of a chunk. Most metrics are decimals with few digits, so value × 10^exponent is a whole number whose
 * differences (gauges) or differences of differences (counters) are small. A value that no exponent makes whole is
 * stored as its 64 bits, XORed with the value before and laid out byte plane by byte plane, because the upper
 * planes are then nearly constant. NaN, ±Inf and -0 inside a decimal chunk stand aside as `specials` with all
 * their bits: a staleness marker is one NaN among many, and arithmetic would turn it into another.
 */
export const VALUES = { constant: 0, delta: 1, delta2: 2, planes: 3 } as const;

const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/** Twice a difference of differences of two such numbers is still exact in a double. */
const LARGEST = 2 ** 50;

export interface ValueCoding {
  kind: number;
  exponent: number;
  /** Every difference is a multiple of 2^shift: memory comes in pages. */
  shift: number;
  specials: number;
}

let whole = new Float64Array(512);

const isSpecial = (value: number): boolean =>
  value - value !== 0 || (value === 0 && 1 / value < 0); /* NaN, ±Inf or -0 */

/** Writes value × 10^exponent into `whole`; false at the first value that does not come back exactly. */
function scale(values: Float64Array, from: number, to: number, exponent: number): boolean {
  const power = POWERS[exponent] as number;
  let last = 0;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (isSpecial(value)) {
      whole[i - from] = last;
      continue;
    }
    last = Math.round(value * power);
    if (last / power !== value || last > LARGEST || last < -LARGEST) return false;
    // Math.round gives -0 for small negative numbers, which only comes back as 0.
    last += 0;
    whole[i - from] = last;
  }
  return true;
}

function countSpecials(values: Float64Array, from: number, to: number): number {
  let specials = 0;
  for (let i = from; i < to; i++) if (isSpecial(values[i] as number)) specials++;
  return specials;
}

function isConstant(bits: Uint32Array, from: number, to: number): boolean {
  for (let i = 2 * from + 2; i < 2 * to; i++) if (bits[i] !== bits[i - 2]) return false;
  return true;
}

const magnitude = (difference: number): number => {
  const size = difference < 0 ? -difference : difference;
  return size < 0x8000_0000 ? 32 - Math.clz32(size) : 32 + Math.log2(size / 0x8000_0000);
};

/** Delta or delta of delta, whichever has fewer bits to say; and the power of two all differences share. */
function chooseDelta(count: number): { kind: number; shift: number } {
  let first = 0;
  let second = 0;
  let shared = 0;
  let before = 0;
  for (let i = 1; i < count; i++) {
    const delta = (whole[i] as number) - (whole[i - 1] as number);
    first += magnitude(delta);
    second += magnitude(delta - before);
    // `|` keeps the low 32 bits of any whole number below 2^53, which is where the trailing zeros are.
    shared |= delta;
    before = delta;
  }
  const shift = shared === 0 ? 0 : 31 - Math.clz32(shared & -shared);
  return { kind: second < first ? VALUES.delta2 : VALUES.delta, shift };
}

/** How these values are best written. Leaves the whole numbers in the scratch column for `putValues`. */
export function chooseCoding(
  values: Float64Array,
  bits: Uint32Array,
  from: number,
  to: number,
  likely_exponent: number,
): ValueCoding {
  const plain = { exponent: 0, shift: 0, specials: 0 };
  if (isConstant(bits, from, to)) return { kind: VALUES.constant, ...plain };
  if (whole.length < to - from) whole = new Float64Array(to - from);
  const specials = countSpecials(values, from, to);
  if (specials * 4 > to - from) return { kind: VALUES.planes, ...plain };
  // A series keeps its number of digits, so the exponent of its last chunk is tried first.
  let exponent = likely_exponent;
  if (likely_exponent > 0 && scale(values, from, to, likely_exponent - 1)) exponent = 0;
  while (exponent < POWERS.length && !scale(values, from, to, exponent)) exponent++;
  if (exponent === POWERS.length) return { kind: VALUES.planes, ...plain };
  return { ...chooseDelta(to - from), exponent, specials };
}

/** `bytes` has room for 9 bytes per sample and 18 per special. */
export function putValues(
  bytes: Uint8Array,
  start: number,
  coding: ValueCoding,
  values: Float64Array,
  bits: Uint32Array,
  from: number,
  to: number,
): number {
  if (coding.kind === VALUES.constant) return putBits(bytes, start, bits, from);
  if (coding.kind === VALUES.planes) return putPlanes(bytes, start, bits, from, to);
  const count = to - from;
  let at = start;
  bytes[at++] = coding.exponent;
  bytes[at++] = coding.shift;
  at = putZigzag(bytes, at, whole[0] as number);
  const unit = 2 ** coding.shift;
  const twice = coding.kind === VALUES.delta2;
  let before = 0;
  for (let i = 1; i < count; i++) {
    const delta = ((whole[i] as number) - (whole[i - 1] as number)) / unit;
    at = putZigzag(bytes, at, twice ? delta - before : delta);
    before = delta;
  }
  if (coding.specials === 0) return at;
  at = putVarint(bytes, at, coding.specials);
  let last = from;
  for (let i = from; i < to; i++) {
    if (!isSpecial(values[i] as number)) continue;
    at = putVarint(bytes, at, i - last);
    at = putBits(bytes, at, bits, i);
    last = i;
  }
  return at;
}

function putBits(bytes: Uint8Array, at: number, bits: Uint32Array, index: number): number {
  for (let k = 0; k < 8; k++) bytes[at + k] = (bits[2 * index + (k >> 2)] as number) >>> (8 * (k & 3));
  return at + 8;
}

function putPlanes(bytes: Uint8Array, start: number, bits: Uint32Array, from: number, to: number): number {
  const count = to - from;
  let low = 0;
  let high = 0;
  for (let i = 0; i < count; i++) {
    const l = bits[2 * (from + i)] as number;
    const h = bits[2 * (from + i) + 1] as number;
    const xl = l ^ low;
    const xh = h ^ high;
    for (let k = 0; k < 4; k++) {
      bytes[start + k * count + i] = xl >>> (8 * k);
      bytes[start + (k + 4) * count + i] = xh >>> (8 * k);
    }
    low = l;
    high = h;
  }
  return start + 8 * count;
}

export function readValues(
  from: ByteReader,
  kind: number,
  special: boolean,
  count: number,
  into: Float64Array,
  at: number,
): void {
  if (kind === VALUES.constant) {
    const bits = new Uint32Array(into.buffer, into.byteOffset, into.length * 2);
    readBits(from, bits, at);
    for (let i = at + 1; i < at + count; i++) {
      bits[2 * i] = bits[2 * at] as number;
      bits[2 * i + 1] = bits[2 * at + 1] as number;
    }
    return;
  }
  if (kind === VALUES.planes) {
    readPlanes(from, count, into, at);
    return;
  }
  const exponent = from.byte();
  const shift = from.byte();
  if (exponent >= POWERS.length || shift > 31) throw new DamagedBytes("a chunk has an impossible scale");
  readDeltas(from, kind === VALUES.delta2, 2 ** shift, count, into, at);
  if (exponent > 0) {
    const power = POWERS[exponent] as number;
    for (let i = at; i < at + count; i++) into[i] = (into[i] as number) / power;
  }
  if (special) readSpecials(from, count, into, at);
}

/** Where queries spend most of their time: the differences are read first, and then summed in place. */
function readDeltas(
  from: ByteReader,
  twice: boolean,
  unit: number,
  count: number,
  into: Float64Array,
  at: number,
): void {
  const first = from.zigzag();
  into[at] = first;
  readDifferences(from, unit, into, at + 1, at + count);
  // Past the end every byte reads as undefined, which ends as NaN in the loops and is refused here.
  if (from.at > from.bytes.length) throw new DamagedBytes("the values end too early");
  let value = first;
  let delta = 0;
  for (let i = at + 1; i < at + count; i++) {
    delta = twice ? delta + (into[i] as number) : (into[i] as number);
    value += delta;
    into[i] = value;
  }
}

/** Numbers of up to four bytes are read in place and stay whole 32-bit numbers; longer ones are rare. */
function readDifferences(from: ByteReader, unit: number, into: Float64Array, at: number, end: number): void {
  const { bytes } = from;
  let p = from.at;
  for (let i = at; i < end; i++) {
    const a = bytes[p++] as number;
    if (a < 128) {
      into[i] = ((a >>> 1) ^ -(a & 1)) * unit;
      continue;
    }
    const b = bytes[p++] as number;
    let coded = (a & 127) | ((b & 127) << 7);
    if (b > 127) {
      const c = bytes[p++] as number;
      coded |= (c & 127) << 14;
      if (c > 127) {
        const d = bytes[p++] as number;
        coded |= d << 21;
        if (d > 127) {
          from.at = p - 4;
          into[i] = from.zigzag() * unit;
          p = from.at;
          continue;
        }
      }
    }
    into[i] = ((coded >>> 1) ^ -(coded & 1)) * unit;
  }
  from.at = p;
}

function readSpecials(from: ByteReader, count: number, into: Float64Array, at: number): void {
  const bits = new Uint32Array(into.buffer, into.byteOffset, into.length * 2);
  const specials = from.varint();
  for (let k = 0, place = 0; k < specials; k++) {
    place += from.varint();
    if (place >= count) throw new DamagedBytes("a special value lies outside its chunk");
    readBits(from, bits, at + place);
  }
}

function readBits(from: ByteReader, bits: Uint32Array, index: number): void {
  const b = from.raw(8);
  for (let k = 0; k < 2; k++) {
    const [b0 = 0, b1 = 0, b2 = 0, b3 = 0] = [b[4 * k], b[4 * k + 1], b[4 * k + 2], b[4 * k + 3]];
    bits[2 * index + k] = b0 | (b1 << 8) | (b2 << 16) | (b3 << 24);
  }
}

function readPlanes(from: ByteReader, count: number, into: Float64Array, at: number): void {
  const planes = from.raw(8 * count);
  const bits = new Uint32Array(into.buffer, into.byteOffset, into.length * 2);
  let low = 0;
  let high = 0;
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < 4; k++) {
      low ^= (planes[k * count + i] as number) << (8 * k);
      high ^= (planes[(k + 4) * count + i] as number) << (8 * k);
    }
    bits[2 * (at + i)] = low;
    bits[2 * (at + i) + 1] = high;
  }
}
