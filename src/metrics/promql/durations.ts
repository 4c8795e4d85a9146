/** Durations: `1h30m`, `1.5d-10s`, `2i` (steps), bare seconds. */

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_536_000_000,
};

/** Upper case is allowed but for `M`, which is a million. */
const PART = /(-?)(\d+(?:\.\d*)?|\.\d+)(m[sS]|[smhdwyiSHDWYI])/gy;
/** One or more parts, the first not negative: what a lexer may take for a duration. */
const DURATION =
  /(?:\d+(?:\.\d*)?|\.\d+)(?:m[sS]|[smhdwyiSHDWYI])(?:-?(?:\d+(?:\.\d*)?|\.\d+)(?:m[sS]|[smhdwyiSHDWYI]))*/y;

/** Length of the duration that starts at `offset`, 0 when there is none. */
export function scanDuration(text: string, offset: number): number {
  DURATION.lastIndex = offset;
  return DURATION.exec(text)?.[0].length ?? 0;
}

/** Milliseconds, `i` counting steps; undefined when it is no duration. Once a part is negative the rest is too. */
export function durationMs(text: string, step_ms: number): number | undefined {
  if (/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Math.trunc(Number(text) * 1000);
  if (text === "") return undefined;
  let total = 0;
  let negative = false;
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (!match) return undefined;
    const unit = (match[3] ?? "").toLowerCase();
    negative ||= match[1] === "-";
    const size = Number(match[2]) * (unit === "i" ? step_ms : (UNIT_MS[unit] ?? Number.NaN));
    total += negative ? -size : size;
  }
  return Math.trunc(total);
}
