/** The functions of templates: Go's own, and those of Prometheus. */
import { isIP } from "node:net";
import { parseFloatStrict } from "#metrics/promql/numbers.ts";
import { findsRegex, replaceAll } from "#metrics/regex.ts";
import { durationOf } from "../yaml/duration.ts";
import { sprintf } from "./printf.ts";
import { formatFloat, isList, isMap, isTrue, Struct, show, typeOf, type Value } from "./values.ts";

/** The environment of template functions: queries and the external URL. */
export interface Surroundings {
  external_url: string;
  query(expr: string): Promise<Value>;
}

type Function = (args: readonly Value[], surroundings: Surroundings) => Value | Promise<Value>;

function wanted(args: readonly Value[], count: number, name: string): void {
  if (args.length !== count) throw new Error(`wrong number of args for ${name}: want ${count} got ${args.length}`);
}

function textOf(value: Value | undefined, name: string): string {
  if (typeof value === "string") return value;
  throw new Error(`wrong type for value of ${name}; expected string; got ${typeOf(value ?? null)}`);
}

function numberOf(value: Value | undefined): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  const parsed = typeof value === "string" ? parseFloatStrict(value) : undefined;
  if (parsed === undefined) throw new Error(`can't convert ${typeOf(value ?? null)} to float`);
  return parsed;
}

const short = (value: number): string => formatFloat(value, "g", 4);

/** A function of one number that gives text. */
const ofNumber =
  (name: string, work: (value: number) => string): Function =>
  (args) => {
    wanted(args, 1, name);
    return work(numberOf(args[0]));
  };

const ofText =
  (name: string, work: (text: string) => Value): Function =>
  (args) => {
    wanted(args, 1, name);
    return work(textOf(args[0], name));
  };

const LARGE = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const LARGE_1024 = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];
const SMALL = ["m", "u", "n", "p", "f", "a", "z", "y"];

function larger(value: number, base: number, prefixes: readonly string[]): string {
  let prefix = "";
  let left = value;
  for (const one of prefixes) {
    if (Math.abs(left) < base) break;
    prefix = one;
    left /= base;
  }
  return short(left) + prefix;
}

function smaller(value: number): string {
  let prefix = "";
  let left = value;
  for (const one of SMALL) {
    if (Math.abs(left) >= 1) break;
    prefix = one;
    left *= 1000;
  }
  return short(left) + prefix;
}

const isOdd = (value: number): boolean => value === 0 || !Number.isFinite(value);

function humanizeDuration(value: number): string {
  if (!Number.isFinite(value)) return short(value);
  if (value === 0) return `${short(value)}s`;
  if (Math.abs(value) < 1) return `${smaller(value)}s`;
  const sign = value < 0 ? "-" : "";
  const whole = Math.trunc(Math.abs(value));
  const seconds = whole % 60;
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600) % 24;
  const days = Math.floor(whole / 86_400);
  if (days > 0) return `${sign}${days}d ${hours}h ${minutes}m ${seconds}s`;
  if (hours > 0) return `${sign}${hours}h ${minutes}m ${seconds}s`;
  if (minutes > 0) return `${sign}${minutes}m ${seconds}s`;
  return `${sign}${short(Math.abs(value))}s`;
}

function humanizeTimestamp(value: number): string {
  if (!Number.isFinite(value)) return short(value);
  const date = new Date(value * 1000);
  if (Number.isNaN(date.getTime())) throw new Error(`${value} cannot be represented as a timestamp`);
  const [day = "", time = ""] = date.toISOString().slice(0, -1).split("T");
  return `${day} ${time.replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros.replace(/0+$/, "")))} +0000 UTC`;
}

/** Splits host and port like Go's net.SplitHostPort. */
function splitPort(text: string): [host: string, port: string] | undefined {
  const [, bracketed, plain, port = ""] = /^(?:\[([^\]]*)\]|([^:]*)):([^:]*)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? undefined : [host, port];
}

function stripDomain(text: string): string {
  const [host, port] = splitPort(text) ?? [text, ""];
  if (isIP(host) !== 0) return text;
  const [first = ""] = host.split(".");
  return port === "" ? first : `${first}:${port}`;
}

const link =
  (tab: number) =>
  (expr: string): string =>
    `/graph?g0.expr=${encodeURIComponent(expr).replaceAll("%20", "+")}&g0.tab=${tab}`;

function sampleOf(value: Value | undefined, name: string): { labels: ReadonlyMap<string, Value>; value: Value } {
  const fields = value instanceof Struct ? value.fields : {};
  const { Labels: labels } = fields;
  if (!isMap(labels)) throw new Error(`${name} takes a sample, as range and first give them`);
  return { labels, value: fields["Value"] ?? null };
}

function listOf(value: Value | undefined, name: string): readonly Value[] {
  if (value !== undefined && isList(value)) return value;
  throw new Error(`${name} takes what query gives`);
}

const labelOf = (name: string, sample: Value): string => show(sampleOf(sample, "label").labels.get(name) ?? "");

/** Only values of the same kind are comparable, as in Go. */
function kindOf(value: Value): string {
  const type = typeOf(value);
  if (!["string", "float64", "int", "bool"].includes(type)) throw new Error("invalid type for comparison");
  return type;
}

function compared(a: Value, b: Value): [left: string | number | bigint, right: string | number | bigint] {
  if (kindOf(a) !== kindOf(b)) throw new Error("incompatible types for comparison");
  return [a, b] as [string, string];
}

function equals(args: readonly Value[]): boolean {
  const [first, ...others] = args;
  if (first === undefined || others.length === 0) throw new Error("missing argument for comparison");
  return others.some((other) => {
    const [left, right] = compared(first, other);
    return left === right;
  });
}

function isLess(args: readonly Value[], name: string): boolean {
  wanted(args, 2, name);
  const [left, right] = compared(args[0] as Value, args[1] as Value);
  if (typeof left === "boolean") throw new Error("invalid type for comparison");
  return left < right;
}

function indexed(value: Value, key: Value): Value {
  if (isMap(value)) return value.get(textOf(key, "index")) ?? "";
  const at = typeof key === "bigint" ? Number(key) : -1;
  if (typeof value === "string") return BigInt(Buffer.from(value)[at] ?? outOfRange(key));
  if (!isList(value)) throw new Error(`can't index item of type ${typeOf(value)}`);
  return value[at] ?? outOfRange(key);
}

const outOfRange = (key: Value): never => {
  throw new Error(`index out of range: ${show(key)}`);
};

function lengthOf(value: Value): bigint {
  if (typeof value === "string") return BigInt(Buffer.byteLength(value));
  if (isMap(value)) return BigInt(value.size);
  if (isList(value)) return BigInt(value.length);
  throw new Error(`len of type ${typeOf(value)}`);
}

/** Go puts a space between operands when neither is a text; `println` always. */
function printed(args: readonly Value[]): string {
  return args
    .map((value, at) => {
      const before = args[at - 1];
      const spaced = at > 0 && typeof value !== "string" && typeof before !== "string";
      return `${spaced ? " " : ""}${value === null ? "<nil>" : show(value)}`;
    })
    .join("");
}

const GO: Record<string, Function> = {
  // `and` and `or` stop early in evaluate.ts; here they are used when piped into.
  and: (args) => args.find((value) => !isTrue(value)) ?? args.at(-1) ?? null,
  or: (args) => args.find(isTrue) ?? args.at(-1) ?? null,
  not: (args) => {
    wanted(args, 1, "not");
    return !isTrue(args[0] as Value);
  },
  eq: equals,
  ne: (args) => {
    wanted(args, 2, "ne");
    return !equals(args);
  },
  lt: (args) => isLess(args, "lt"),
  le: (args) => isLess(args, "le") || equals(args),
  gt: (args) => !isLess(args, "gt") && !equals(args),
  ge: (args) => !isLess(args, "ge"),
  index: ([value = null, ...keys]) => keys.reduce(indexed, value),
  len: (args) => {
    wanted(args, 1, "len");
    return lengthOf(args[0] as Value);
  },
  print: printed,
  println: (args) => `${args.map((value) => (value === null ? "<nil>" : show(value))).join(" ")}\n`,
  printf: ([format, ...args]) => sprintf(textOf(format, "printf"), args),
  urlquery: (args) => encodeURIComponent(printed(args)).replaceAll("%20", "+"),
  html: (args) =>
    printed(args).replaceAll(
      /[<>&'"]/g,
      (char) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;", "'": "&#39;" })[char] ?? "&#34;",
    ),
};

const PROMETHEUS: Record<string, Function> = {
  query: (args, { query }) => {
    wanted(args, 1, "query");
    return query(textOf(args[0], "query"));
  },
  first: (args) =>
    listOf(args[0], "first")[0] ??
    (() => {
      throw new Error("first() called on vector with no elements");
    })(),
  label: (args) => {
    wanted(args, 2, "label");
    return labelOf(textOf(args[0], "label"), args[1] as Value);
  },
  value: (args) => sampleOf(args[0], "value").value,
  strvalue: (args) => labelOf("__value__", args[0] ?? null),
  sortByLabel: (args) => {
    const name = textOf(args[0], "sortByLabel");
    return [...listOf(args[1], "sortByLabel")].sort((a, b) => (labelOf(name, a) < labelOf(name, b) ? -1 : 1));
  },
  humanize: ofNumber("humanize", (value) => {
    if (isOdd(value)) return short(value);
    return Math.abs(value) >= 1 ? larger(value, 1000, LARGE) : smaller(value);
  }),
  humanize1024: ofNumber("humanize1024", (value) =>
    Math.abs(value) <= 1 || !Number.isFinite(value) ? short(value) : larger(value, 1024, LARGE_1024),
  ),
  humanizeDuration: ofNumber("humanizeDuration", humanizeDuration),
  humanizePercentage: ofNumber("humanizePercentage", (value) => `${short(value * 100)}%`),
  humanizeTimestamp: ofNumber("humanizeTimestamp", humanizeTimestamp),
  title: ofText("title", (text) =>
    text.replaceAll(
      /(^|[^\p{L}\p{N}_'])(\p{L})/gu,
      (_all, before: string, letter: string) => before + letter.toUpperCase(),
    ),
  ),
  toUpper: ofText("toUpper", (text) => text.toUpperCase()),
  toLower: ofText("toLower", (text) => text.toLowerCase()),
  stripPort: ofText("stripPort", (text) => splitPort(text)?.[0] ?? text),
  stripDomain: ofText("stripDomain", stripDomain),
  parseDuration: ofText("parseDuration", (text) => {
    const ms = durationOf(text);
    if (ms === undefined) throw new Error(`not a valid duration string: ${JSON.stringify(text)}`);
    return ms / 1000;
  }),
  tableLink: ofText("tableLink", link(1)),
  graphLink: ofText("graphLink", link(0)),
  match: (args) => {
    wanted(args, 2, "match");
    return findsRegex(textOf(args[0], "match"), textOf(args[1], "match"));
  },
  reReplaceAll: (args) => {
    wanted(args, 3, "reReplaceAll");
    const [pattern, replacement, text] = args.map((one) => textOf(one, "reReplaceAll")) as [string, string, string];
    return replaceAll(pattern, replacement)(text) ?? text;
  },
  safeHtml: ofText("safeHtml", (text) => text),
  args: (args) => new Map(args.map((value, at): [string, Value] => [`arg${at}`, value])),
  externalURL: (_args, { external_url }) => external_url,
  pathPrefix: (_args, { external_url }) =>
    URL.canParse(external_url) ? new URL(external_url).pathname.replace(/\/$/, "") : "",
};

export const FUNCTIONS: Readonly<Record<string, Function>> = {
  ...GO,
  ...PROMETHEUS,
};
