/** Numbers as the query languages and Go write them: labels made from values must look like the peers' labels. */

const MULTIPLIERS: Record<string, number> = {
  "": 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
};

/** `1_000`, `1.5Mi`, `0x1F`, `017`, `1e3`, `inf`, `nan`: undefined when it is no number. */
export function parseNumber(text: string): number | undefined {
  const lower = text.toLowerCase().replaceAll("_", "");
  if (lower === "inf" || lower === "+inf") return Number.POSITIVE_INFINITY;
  if (lower === "nan") return Number.NaN;
  if (/^0[xob]/.test(lower)) {
    const value = Number(lower);
    return Number.isNaN(value) ? undefined : value;
  }
  if (/^0[0-7]+$/.test(lower)) return Number.parseInt(lower, 8);
  const match = /^((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:([kmgt])(i?)b?)?$/.exec(lower);
  if (!match) return undefined;
  const [, digits = "", suffix = "", binary] = match;
  const base = MULTIPLIERS[suffix] ?? 1;
  const scale = binary ? 1024 ** Math.round(Math.log10(base) / 3) : base;
  return Number(digits) * scale;
}

/** Go's strconv.ParseFloat, as far as label values need it. */
export function parseFloatStrict(text: string): number | undefined {
  const lower = text.toLowerCase();
  if (/^[+-]?inf(inity)?$/.test(lower))
    return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (lower === "nan") return Number.NaN;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(lower)) return undefined;
  return Number(lower);
}

/** Go writes the sign of an infinity, JavaScript its whole name. */
function special(value: number): string | undefined {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return undefined;
}

/** Shortest digits, never an exponent: Go's 'f' format. */
export function formatFixed(value: number): string {
  const odd = special(value);
  if (odd !== undefined) return odd;
  const plain = String(value);
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(plain);
  if (!match) return Object.is(value, -0) ? "-0" : plain;
  const [, sign = "", first = "", rest = "", exponent = "0"] = match;
  const shift = Number(exponent);
  const digits = first + rest;
  if (shift < 0) return `${sign}0.${"0".repeat(-shift - 1)}${digits}`;
  return sign + digits.padEnd(shift + 1, "0");
}

/** As OpenMetrics has numbers in labels: a whole one with `.0`. */
export function formatLabel(value: number): string {
  const text = formatShort(value);
  return /[e.NI]/.test(text) ? text : `${text}.0`;
}

/** From this power of ten on, Go's 'g' format writes an exponent. */
const EXPONENT_FROM = 6;

/** Shortest digits, an exponent of at least two digits below 1e-4 and from 1e6 up: Go's 'g' format. */
export function formatShort(value: number): string {
  const odd = special(value);
  if (odd !== undefined) return odd;
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa = "", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < EXPONENT_FROM) return formatFixed(value);
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
