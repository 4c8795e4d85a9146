/** Numbers as metrics formats write them. */

const ZERO = 0x30;
const DOT = 0x2e;
const MINUS = 0x2d;
const SHAPE = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const NAMED: Record<string, number> = {
  nan: Number.NaN,
  "+nan": Number.NaN,
  "-nan": Number.NaN,
  inf: Infinity,
  "+inf": Infinity,
  "-inf": -Infinity,
  infinity: Infinity,
  "+infinity": Infinity,
  "-infinity": -Infinity,
};
/** More digits than this and the whole number may not be exact: then the text is read the long way. */
const EXACT_DIGITS = 15;
const POWERS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/** The number between two places, or undefined when it is none. Plain decimals are read without a string. */
export function parseNumber(bytes: Uint8Array, start: number, end: number): number | undefined {
  let at = start;
  const negative = bytes[at] === MINUS;
  if (negative) at++;
  let whole = 0;
  let digits = 0;
  let point = -1;
  for (; at < end; at++) {
    const byte = bytes[at] as number;
    const digit = byte - ZERO;
    if (digit >= 0 && digit <= 9) {
      whole = whole * 10 + digit;
      digits++;
    } else if (byte === DOT && point < 0) point = digits;
    else break;
  }
  if (at < end || digits === 0 || digits > EXACT_DIGITS) return parseText(bytes, start, end);
  // Both are exact, so the division rounds once, to the nearest double: what the text means.
  const value = point < 0 ? whole : whole / (POWERS[digits - point] as number);
  return negative ? -value : value;
}

function parseText(bytes: Uint8Array, start: number, end: number): number | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
  if (SHAPE.test(text)) return Number(text);
  return NAMED[text.toLowerCase()];
}

/** As the exposition formats spell it; comes back as the same double. */
export function formatNumber(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return Object.is(value, -0) ? "-0" : String(value);
}
