/** Values of templates, as Go sees them: a number is a float64, a bigint an int, a Map a map of texts. */
import { formatFixed, formatShort } from "#metrics/promql/numbers.ts";

export type Value = string | number | bigint | boolean | null | readonly Value[] | ReadonlyMap<string, Value> | Struct;

/** Has fields; another one is an error, while a map gives an empty text. */
export class Struct {
  readonly type: string;
  readonly fields: Readonly<Record<string, Value>>;

  constructor(type: string, fields: Readonly<Record<string, Value>>) {
    this.type = type;
    this.fields = fields;
  }
}

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

export const isMap = (value: Value | undefined): value is ReadonlyMap<string, Value> => value instanceof Map;

export function typeOf(value: Value): string {
  if (typeof value === "string") return "string";
  if (typeof value === "number") return "float64";
  if (typeof value === "bigint") return "int";
  if (typeof value === "boolean") return "bool";
  if (value === null) return "nil";
  if (value instanceof Struct) return value.type;
  return isList(value) ? "[]interface {}" : "map[string]string";
}

export function isTrue(value: Value): boolean {
  if (value === null || value === "" || value === false || value === 0 || value === 0n) return false;
  if (isMap(value)) return value.size > 0;
  return isList(value) ? value.length > 0 : true;
}

/** As `fmt` prints it with %v. */
export function show(value: Value): string {
  if (typeof value === "number") return formatShort(value);
  if (value === null) return "<no value>";
  if (isMap(value)) {
    const pairs = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `map[${pairs.map(([key, one]) => `${key}:${show(one)}`).join(" ")}]`;
  }
  if (value instanceof Struct) return `{${Object.values(value.fields).map(show).join(" ")}}`;
  return isList(value) ? `[${value.map(show).join(" ")}]` : String(value as string | bigint | boolean);
}

/** A number as Go's `%<flags><width>.<precision><verb>` prints it. */
export function formatFloat(value: number, verb: string, precision: number | undefined): string {
  if (!Number.isFinite(value)) return formatShort(value);
  const lower = verb.toLowerCase();
  if (lower === "f") return fixed(value, Math.min(100, precision ?? 6));
  if (lower === "e") return twoDigits(exponential(value, Math.min(100, precision ?? 6)), verb);
  if (precision === undefined) return verb === "G" ? formatShort(value).toUpperCase() : formatShort(value);
  const digits = Math.min(100, Math.max(1, precision));
  if (value === 0) return formatShort(value);
  const rounded = exponential(value, digits - 1);
  const exponent = Number(rounded.split("e")[1]);
  const trimmed = rounded.replace(/(\.\d*?)0*(e)/, (_all, fraction: string, e: string) =>
    fraction === "." ? e : fraction + e,
  );
  if (exponent < -4 || exponent >= digits) return twoDigits(trimmed, verb === "G" ? "E" : "e");
  return formatFixed(Number(trimmed));
}

/** `toFixed` writes exponents from 1e21 on; such numbers have no fraction. */
const fixed = (value: number, digits: number): string =>
  Math.abs(value) < 1e21
    ? toEven(value, digits, (one, count) => one.toFixed(count))
    : BigInt(value).toString() + (digits > 0 ? `.${"0".repeat(digits)}` : "");

const exponential = (value: number, digits: number): string =>
  toEven(value, digits, (one, count) => one.toExponential(count));

/** Enough for all digits of a number that is exactly between two of fewer digits. */
const ALL_DIGITS = 100;

/** Go rounds what is exactly between two to the even digit, and JavaScript up; Go writes the sign of -0, too. */
function toEven(value: number, digits: number, write: (value: number, digits: number) => string): string {
  const size = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [, number = "", power = ""] = /^([\d.]+)(.*)$/.exec(write(size, ALL_DIGITS)) ?? [];
  const end = number.indexOf(".") + 1 + digits;
  const below = number.slice(0, end).replace(/\.$/, "");
  const is_tie = /^50*$/.test(number.slice(end));
  return sign + (is_tie && /[02468]$/.test(below) ? below + power : write(size, digits));
}

const twoDigits = (text: string, verb: string): string => {
  const padded = text.replace(/e([+-])(\d)$/, "e$10$2");
  return verb === "E" ? padded.toUpperCase() : padded;
};
