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
 * Parses a duration as people and Go programs write it (`90s`, `1h30m`, `30d`), in milliseconds. Undefined when
 * invalid.
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|[smhdwy]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdwy])/g)) {
    total += Number(amount) * (UNITS[unit ?? ""] ?? Number.NaN);
  }
  return Math.round(total);
}

const NANOSECONDS: Record<string, number> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ...UNITS };

/**
 * Parses a duration in a machine's config: whole nanoseconds, or text with units down to `ns`. In milliseconds;
 * undefined when invalid.
 */
export function configDuration(value: number | string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number") return value / 1e6;
  if (value === "0") return 0;
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|[smhd]))+$/.test(value)) return undefined;
  let total = 0;
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|[smhd])/g)) {
    total += Number(amount) * (NANOSECONDS[unit ?? ""] ?? Number.NaN);
  }
  return total;
}
