/** Durations as Prometheus' configuration files write them: `1h30m`, units in falling order, no fractions. */
const FORM = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;
const UNITS = [365 * 86_400_000, 7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1000, 1];

/** Milliseconds; undefined when it is no duration. */
export function durationOf(value: unknown): number | undefined {
  if (value === 0 || value === "0") return 0;
  if (typeof value !== "string" || value === "") return undefined;
  const parts = FORM.exec(value);
  if (!parts) return undefined;
  const ms = UNITS.reduce((sum, unit, at) => sum + Number(parts[at + 1] ?? 0) * unit, 0);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** As Prometheus writes them. */
export function durationText(ms: number): string {
  if (ms === 0) return "0s";
  let left = ms;
  let text = "";
  for (const [at, unit] of ["y", "w", "d", "h", "m", "s", "ms"].entries()) {
    const size = UNITS[at] as number;
    // Years, weeks and days are written only when nothing is left.
    if (at < 3 && left % size !== 0) continue;
    const count = Math.floor(left / size);
    if (count > 0) text += `${count}${unit}`;
    left -= count * size;
  }
  return text;
}
