/** Go's Printf for the values of templates. */
import { formatFloat, show, typeOf, type Value } from "./values.ts";

const VERB = /%([-+# 0]*)(\d+)?(?:\.(\d*))?([a-zA-Z%])?/g;
/** Wider or longer results would only use memory. */
const MOST_WIDTH = 1000;

export function sprintf(format: string, args: readonly Value[]): string {
  let next = 0;
  const text = format.replaceAll(
    VERB,
    (_all, flags: string, width: string | undefined, precision: string | undefined, verb: string | undefined) => {
      if (verb === undefined) return "%!(NOVERB)";
      if (verb === "%") return "%";
      const value = args[next++];
      if (value === undefined) return `%!${verb}(MISSING)`;
      const digits = precision === undefined ? undefined : Math.min(Number(precision || 0), MOST_WIDTH);
      return padded(formatted(value, verb, digits, flags), Math.min(Number(width ?? 0), MOST_WIDTH), flags, value);
    },
  );
  const rest = args.slice(next);
  if (rest.length === 0) return text;
  return `${text}%!(EXTRA ${rest.map((value) => `${typeOf(value)}=${show(value)}`).join(", ")})`;
}

function formatted(value: Value, verb: string, precision: number | undefined, flags: string): string {
  const text = plain(value, verb, precision);
  if (text === undefined) return value === null ? `%!${verb}(<nil>)` : `%!${verb}(${typeOf(value)}=${show(value)})`;
  const isNumber = typeof value === "number" || typeof value === "bigint";
  return isNumber && /[+ ]/.test(flags) && !/^[+-]/.test(text) ? `${flags.includes("+") ? "+" : " "}${text}` : text;
}

function plain(value: Value, verb: string, precision: number | undefined): string | undefined {
  if (verb === "v") {
    if (typeof value === "number" && precision !== undefined) return formatFloat(value, "g", precision);
    return value === null ? "<nil>" : show(value);
  }
  switch (typeof value) {
    case "number":
      return /[feEgGF]/.test(verb) ? formatFloat(value, verb, precision) : undefined;
    case "bigint":
      return intText(value, verb);
    case "boolean":
      return verb === "t" ? String(value) : undefined;
    case "string":
      return stringText(value, verb, precision);
    default:
      return verb === "s" && value !== null ? show(value) : undefined;
  }
}

const BASES: Record<string, number> = { d: 10, b: 2, o: 8, x: 16, X: 16 };

function intText(value: bigint, verb: string): string | undefined {
  if (verb === "c") return String.fromCodePoint(Number(BigInt.asUintN(20, value)));
  const base = BASES[verb];
  if (base === undefined) return undefined;
  return verb === "X" ? value.toString(base).toUpperCase() : value.toString(base);
}

function stringText(value: string, verb: string, precision: number | undefined): string | undefined {
  const cut = precision === undefined ? value : Array.from(value).slice(0, precision).join("");
  if (verb === "s") return cut;
  if (verb === "q") return JSON.stringify(cut);
  if (verb !== "x" && verb !== "X") return undefined;
  const hex = Buffer.from(cut).toString("hex");
  return verb === "X" ? hex.toUpperCase() : hex;
}

function padded(text: string, width: number, flags: string, value: Value): string {
  const missing = width - Array.from(text).length;
  if (missing <= 0) return text;
  if (flags.includes("-")) return text + " ".repeat(missing);
  const isNumber = (typeof value === "number" && Number.isFinite(value)) || typeof value === "bigint";
  if (!flags.includes("0") || !isNumber) return " ".repeat(missing) + text;
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  return sign + "0".repeat(missing) + text.slice(sign.length);
}
