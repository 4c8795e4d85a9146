import { startingState } from "./random-state.ts";

/**
 * Random numbers that a seed repeats: a lagged Fibonacci generator, and ziggurats (Marsaglia and Tsang) for the
 * normal and exponential distributions. The sequences are those of Go's math/rand, which dashboards with a fixed
 * seed rely on.
 */
const LENGTH = 607;
const TAP = 273;
const MODULUS = 2 ** 31 - 1;
const ZERO_SEED = 89_482_311;
const MASK_63 = (1n << 63n) - 1n;

interface Generator {
  /** 63 random bits. */
  bits(): bigint;
  /** From 0 up to 1, 1 not included. */
  unit(): number;
  /** 32 random bits. */
  word(): number;
}

/** Schrage's form of x * 48271 mod 2^31-1, which never overflows. */
function nextSeed(x: number): number {
  const next = 48_271 * (x % 44_488) - 3_399 * Math.floor(x / 44_488);
  return next < 0 ? next + MODULUS : next;
}

let cooked: BigUint64Array | undefined;

function generator(seed: number): Generator {
  cooked ??= startingState();
  let x = seed % MODULUS;
  if (x < 0) x += MODULUS;
  if (x === 0) x = ZERO_SEED;
  const state = new BigUint64Array(LENGTH);
  for (let i = -20; i < LENGTH; i++) {
    x = nextSeed(x);
    if (i < 0) continue;
    let word = BigInt(x) << 40n;
    x = nextSeed(x);
    word ^= BigInt(x) << 20n;
    x = nextSeed(x);
    word ^= BigInt(x);
    state[i] = word ^ (cooked[i] as bigint);
  }
  let tap = 0;
  let feed = LENGTH - TAP;
  const bits = (): bigint => {
    tap = tap === 0 ? LENGTH - 1 : tap - 1;
    feed = feed === 0 ? LENGTH - 1 : feed - 1;
    state[feed] = (state[feed] as bigint) + (state[tap] as bigint);
    return (state[feed] as bigint) & MASK_63;
  };
  // The largest values round to 1 as a double, and are drawn again.
  const unit = (): number => {
    for (;;) {
      const value = Number(bits()) / 2 ** 63;
      if (value < 1) return value;
    }
  };
  return { bits, unit, word: () => Number(bits() >> 31n) };
}

function draw(seed: number | undefined, count: number, one: (g: Generator) => number): Float64Array {
  const whole = seed === undefined || !Number.isFinite(seed) ? Math.floor(Math.random() * MODULUS) : Math.trunc(seed);
  const g = generator(whole);
  const values = new Float64Array(count);
  for (let i = 0; i < count; i++) values[i] = one(g);
  return values;
}

export const uniforms = (seed: number | undefined, count: number): Float64Array => draw(seed, count, (g) => g.unit());
export const normals = (seed: number | undefined, count: number): Float64Array => draw(seed, count, normal);
export const exponentials = (seed: number | undefined, count: number): Float64Array => draw(seed, count, exponential);

/** The layers of a ziggurat: thresholds, widths and heights, in single precision like the published tables. */
interface Ziggurat {
  limit: Uint32Array;
  width: Float32Array;
  height: Float32Array;
}

function ziggurat(
  layers: number,
  scale: number,
  edge: number,
  area: number,
  density: (x: number) => number,
  inverse: (y: number) => number,
): Ziggurat {
  const limit = new Uint32Array(layers);
  const width = new Float32Array(layers);
  const height = new Float32Array(layers);
  const base = area / density(edge);
  limit[0] = (edge / base) * scale;
  width[0] = base / scale;
  width[layers - 1] = edge / scale;
  height[0] = 1;
  height[layers - 1] = density(edge);
  let outer = edge;
  for (let i = layers - 2; i >= 1; i--) {
    const inner = inverse(area / outer + density(outer));
    limit[i + 1] = (inner / outer) * scale;
    outer = inner;
    height[i] = density(inner);
    width[i] = inner / scale;
  }
  return { limit, width, height };
}

const NORMAL_EDGE = 3.442619855899;
const EXPONENTIAL_EDGE = 7.697117470131049;
const bell = (x: number): number => Math.exp(-0.5 * x * x);

const NORMAL = ziggurat(128, 2 ** 31, NORMAL_EDGE, 9.91256303526217e-3, bell, (y) => Math.sqrt(-2 * Math.log(y)));
const EXPONENTIAL = ziggurat(
  256,
  2 ** 32,
  EXPONENTIAL_EDGE,
  3.949659822581572e-3,
  (x) => Math.exp(-x),
  (y) => -Math.log(y),
);

/** Whether a point between two layers lies under the curve. */
function under(g: Generator, z: Ziggurat, layer: number, density: number): boolean {
  const low = z.height[layer] as number;
  const step = Math.fround(Math.fround(g.unit()) * Math.fround((z.height[layer - 1] as number) - low));
  return Math.fround(low + step) < Math.fround(density);
}

function normal(g: Generator): number {
  for (;;) {
    const signed = g.word() | 0;
    const layer = signed & 0x7f;
    const x = signed * (NORMAL.width[layer] as number);
    if (Math.abs(signed) < (NORMAL.limit[layer] as number)) return x;
    if (layer === 0) return tail(g, signed > 0);
    if (under(g, NORMAL, layer, bell(x))) return x;
  }
}

function tail(g: Generator, positive: boolean): number {
  for (;;) {
    const x = -Math.log(g.unit()) / NORMAL_EDGE;
    const y = -Math.log(g.unit());
    if (y + y >= x * x) return positive ? NORMAL_EDGE + x : -NORMAL_EDGE - x;
  }
}

function exponential(g: Generator): number {
  for (;;) {
    const word = g.word();
    const layer = word & 0xff;
    const x = word * (EXPONENTIAL.width[layer] as number);
    if (word < (EXPONENTIAL.limit[layer] as number)) return x;
    if (layer === 0) return EXPONENTIAL_EDGE - Math.log(g.unit());
    if (under(g, EXPONENTIAL, layer, Math.exp(-x))) return x;
  }
}
