/** Operators on two numbers. The columns of `binary/` and `strict/binary.ts` and the constants of the parser use the same ones. */

export const ARITHMETIC: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "%": (a, b) => a % b,
  "^": power,
  atan2: Math.atan2,
};

/** JavaScript says 1 ** NaN is NaN and so is (-1) ** Infinity; C and Go say 1. */
function power(base: number, exponent: number): number {
  if (base === 1) return 1;
  if (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY) return 1;
  return base ** exponent;
}

/** MetricsQL: an absent value is NaN, and absent equals absent. */
export const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  "==": (a, b) => a === b || (Number.isNaN(a) && Number.isNaN(b)),
  "!=": (a, b) => a !== b && !(Number.isNaN(a) && Number.isNaN(b)),
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
};

const CHOICE: Record<string, (a: number, b: number) => number> = {
  default: (a, b) => (Number.isNaN(a) ? b : a),
  or: (a, b) => (Number.isNaN(a) ? b : a),
  if: (a, b) => (Number.isNaN(b) ? Number.NaN : a),
  and: (a, b) => (Number.isNaN(b) ? Number.NaN : a),
  ifnot: (a, b) => (Number.isNaN(b) ? a : Number.NaN),
  unless: (a, b) => (Number.isNaN(b) ? a : Number.NaN),
};

export function foldNumbers(op: string, a: number, b: number, bool: boolean): number {
  const compare = COMPARE[op];
  if (compare) {
    const holds = compare(a, b);
    if (bool) return holds ? 1 : 0;
    return holds ? a : Number.NaN;
  }
  return (ARITHMETIC[op] ?? CHOICE[op])?.(a, b) ?? Number.NaN;
}
