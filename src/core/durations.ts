const UNITS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_557_600_000,
};

/**
 * A length of time as people and Go programs write it (`90s`, `1h30m`, `30d`), in milliseconds.
 * Undefined when it is not one.
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|[smhdwy]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdwy])/g)) {
    total += Number(amount) * (UNITS[unit ?? ""] ?? Number.NaN);
  }
  return Math.round(total);
}
