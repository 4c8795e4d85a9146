/** What means the same in both dialects: functions of one number, and parts of a date. */

export const OF_ONE_NUMBER: Readonly<Record<string, (value: number) => number>> = {
  abs: Math.abs,
  acos: Math.acos,
  acosh: Math.acosh,
  asin: Math.asin,
  asinh: Math.asinh,
  atan: Math.atan,
  atanh: Math.atanh,
  ceil: Math.ceil,
  cos: Math.cos,
  cosh: Math.cosh,
  deg: (v) => (v * 180) / Math.PI,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log10: Math.log10,
  log2: Math.log2,
  rad: (v) => (v * Math.PI) / 180,
  sin: Math.sin,
  sinh: Math.sinh,
  sqrt: Math.sqrt,
  tan: Math.tan,
  tanh: Math.tanh,
};

/** Days and hours are those of UTC. */
export const DATE_PARTS: Readonly<Record<string, (date: Date) => number>> = {
  day_of_month: (d) => d.getUTCDate(),
  day_of_week: (d) => d.getUTCDay(),
  day_of_year: (d) => Math.floor((d.getTime() - Date.UTC(d.getUTCFullYear(), 0, 1)) / DAY_MS) + 1,
  days_in_month: (d) => new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 0)).getUTCDate(),
  hour: (d) => d.getUTCHours(),
  minute: (d) => d.getUTCMinutes(),
  month: (d) => d.getUTCMonth() + 1,
  year: (d) => d.getUTCFullYear(),
};

const DAY_MS = 86_400_000;

export function dateValue(seconds: number, part: (date: Date) => number): number {
  return Number.isNaN(seconds) ? Number.NaN : part(new Date(Math.trunc(seconds) * 1000));
}

/** Every entry of one of these tables as a function of a dialect. */
export function each<From, To>(table: Readonly<Record<string, From>>, make: (from: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(table).map(([name, from]) => [name, make(from)]));
}
