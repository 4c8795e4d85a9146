import { readFileSync } from "node:fs";

/**
 * Points of a series as JSON, made by `native/points.c`: half the time that V8 takes to turn numbers into the same
 * text, and no garbage. The memory of that small program is laid out here: powers of ten, then the times of the answer
 * (the same for most series), then the values of one series and what becomes of them.
 */
interface Program {
  memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  __heap_base: { readonly value: number };
  set_powers(at: number): void;
  write_points(count: number, values: number, times: number, ends: number, out: number): number;
}

/** What Node has and its types leave to the browser's: hence the cast in `load`. */
interface Wasm {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
}

const FIRST_POWER = -292;
const LAST_POWER = 324;
const PAGE_BYTES = 65_536;
/** `,"-1.2345678901234567e-123"]`. */
const POINT_BYTES = 28;
/** The program copies eight bytes at a time, the last ones past the end. */
const SLACK_BYTES = 64;

const program = load();
const TABLE = align(program.__heap_base.value);
const TIMES = TABLE + (LAST_POWER - FIRST_POWER + 1) * 16;
putPowers();

/** The list of times that lies in the program's memory. */
let loaded: readonly string[] | undefined;
let times_bytes = 0;

/** All points, without brackets around them; good until the next call. Times come as `[1700000040,`. */
export function pointsAsJson(values: Float64Array, times: readonly string[]): Uint8Array {
  if (times !== loaded) loadTimes(times);
  const ends = TIMES;
  const texts = ends + times.length * 4;
  const numbers = align(texts + times_bytes);
  const out = numbers + values.length * 8;
  reserve(out + times_bytes + values.length * POINT_BYTES + SLACK_BYTES);
  const { buffer } = program.memory;
  new Float64Array(buffer, numbers, values.length).set(values);
  return new Uint8Array(buffer, out, program.write_points(values.length, numbers, texts, ends, out));
}

function loadTimes(times: readonly string[]): void {
  const text = Buffer.from(times.join(""), "latin1");
  reserve(TIMES + times.length * 4 + text.length);
  const ends = new Uint32Array(program.memory.buffer, TIMES, times.length);
  let end = 0;
  for (const [i, time] of times.entries()) {
    end += time.length;
    ends[i] = end;
  }
  new Uint8Array(program.memory.buffer, TIMES + times.length * 4).set(text);
  loaded = times;
  times_bytes = text.length;
}

function load(): Program {
  const { Module, Instance } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;
  const bytes = readFileSync(new URL("./native/points.wasm", import.meta.url));
  return new Instance(new Module(bytes)).exports as Program;
}

function align(at: number): number {
  return Math.ceil(at / 16) * 16;
}

function reserve(bytes: number): void {
  const missing = bytes - program.memory.buffer.byteLength;
  if (missing > 0) program.memory.grow(Math.ceil(missing / PAGE_BYTES));
}

/** Every power of ten as 128 bits, of which the first is 1; rounded up where there are more. */
function putPowers(): void {
  reserve(TIMES);
  const table = new BigUint64Array(program.memory.buffer, TABLE, (LAST_POWER - FIRST_POWER + 1) * 2);
  for (let power = FIRST_POWER; power <= LAST_POWER; power++) {
    const g = topBits(power);
    table[(power - FIRST_POWER) * 2] = g >> 64n;
    table[(power - FIRST_POWER) * 2 + 1] = g & 0xffff_ffff_ffff_ffffn;
  }
  program.set_powers(TABLE);
}

function topBits(power: number): bigint {
  const ten = 10n ** BigInt(Math.abs(power));
  const length = BigInt(ten.toString(2).length);
  if (power >= 0) {
    const cut = length - 128n;
    return cut <= 0n ? ten << -cut : roundedUp(ten, 1n << cut);
  }
  // 1/10^n lies between 2^-length and 2^(1-length), so this has 128 bits.
  return roundedUp(1n << (length + 127n), ten);
}

function roundedUp(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}
