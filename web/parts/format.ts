/** Formats numbers and times. */
const UNITS: readonly [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** 340 ms, 2.4 s, 3 min, 5 h. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const [size, unit] = UNITS.find(([each]) => ms >= each) ?? [1000, "s"];
  return `${Math.floor(ms / size)} ${unit}`;
}

export function ago(ms: number, now: number): string {
  const passed = now - ms;
  return passed < 5000 ? "just now" : `${duration(Math.floor(passed / 1000) * 1000).replace(".0 ", " ")} ago`;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

export const megabytes = (mb: number): string => (mb === 0 ? "0 MiB" : bytes(mb * 1024 * 1024));

/** Short figures for axes and tables: 1.2k, 3.4M, 0.05. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  return size !== 0 && size < 0.001 ? value.toExponential(1) : trim(value);
}

const trim = (value: number): string => String(Number(value.toPrecision(4)));

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const clockTime = (ms: number): string => new Date(ms).toLocaleTimeString([], { hour12: false });

export const exactTime = (ms: number): string =>
  new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false });
