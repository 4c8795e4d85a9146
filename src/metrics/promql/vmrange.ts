/**
 * Buckets without bounds to choose: 18 per power of ten, from 1e-9 to 1e18, named `1.136e+00...1.292e+00`.
 */
const PER_DECADE = 18;
const LOWEST_POWER = -9;
const DECADES = 27;
const RATIO = 10 ** (1 / PER_DECADE);
const LOWER = "0...1.000e-09";
const UPPER = "1.000e+18...+Inf";

function name(value: number): string {
  const [mantissa = "", exponent = "0"] = value.toExponential(3).split("e");
  const power = Number(exponent);
  return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** The bounds are multiplied up from the lowest, so that rounding gives the same names everywhere. */
const NAMES: readonly string[] = ((): string[] => {
  let bound = 10 ** LOWEST_POWER;
  let start = name(bound);
  return Array.from({ length: DECADES * PER_DECADE }, () => {
    bound *= RATIO;
    const end = name(bound);
    const range = `${start}...${end}`;
    start = end;
    return range;
  });
})();

/** The bucket of a value; undefined for negative values and NaN, which are not counted. */
function bucketOf(value: number): string | undefined {
  if (Number.isNaN(value) || value < 0) return undefined;
  const index = (Math.log10(value) - LOWEST_POWER) * PER_DECADE;
  if (index < 0) return LOWER;
  if (index >= NAMES.length) return UPPER;
  // A value on a bound belongs to the bucket that ends there.
  const whole = Math.floor(index);
  return NAMES[index === whole && whole > 0 ? whole - 1 : whole];
}

/** How many values each bucket holds, for the buckets that hold any. */
export function visitBuckets(values: Iterable<number>, visit: (range: string, count: number) => void): void {
  const counts = new Map<string, number>();
  for (const value of values) {
    const bucket = bucketOf(value);
    if (bucket !== undefined) counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  for (const [range, count] of counts) visit(range, count);
}
