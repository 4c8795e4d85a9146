/** Random queries from the grammar of MetricsQL, the same for the same choices. */
import { AGGREGATES, ROLLUPS, TRANSFORMS } from "#metrics/promql/functions/names.ts";

export type Random = () => number;

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

const ROLLUP_NAMES = Object.keys(ROLLUPS);
const TRANSFORM_NAMES = [...TRANSFORMS];
const AGGREGATE_NAMES = [...AGGREGATES];
const NAMES = ["up", "http_requests_total", "latency_bucket", "a:b", "温度", "x\\-y", "by", "with"];
const LABELS = ["app", "status", "le", "instance", "__name__"];
const OPERATORS = [
  "+",
  "-",
  "*",
  "/",
  "%",
  "^",
  "==",
  "!=",
  ">",
  "<",
  ">=",
  "<=",
  "and",
  "or",
  "unless",
  "default",
  "if",
  "ifnot",
  "atan2",
];
const DURATIONS = ["5m", "1h30m", "10s", "2i", "1.5d", "100", "1w-1d", "500ms"];
const NUMBERS = ["0", "1", "-2.5", "1e3", "12Ki", "1_000", "0x1F", "inf", "NaN", "1h", ".5"];

export function generateQuery(random: Random, depth = 4): string {
  if (depth <= 0) return leaf(random);
  const forms: (() => string)[] = [
    () => leaf(random),
    () => `${generateQuery(random, depth - 1)} ${binary(random)} ${generateQuery(random, depth - 1)}`,
    () => `(${generateQuery(random, depth - 1)})`,
    () => `${pick(random, ROLLUP_NAMES)}(${window(random, depth)})`,
    () => `${pick(random, ROLLUP_NAMES)}(${pick(random, NUMBERS)}, ${window(random, depth)})`,
    () => `${pick(random, TRANSFORM_NAMES)}(${args(random, depth)})`,
    () => aggregate(random, depth),
    () => `-${generateQuery(random, depth - 1)}`,
    () => `(${args(random, depth)},)`,
    () => `WITH (x = ${generateQuery(random, depth - 1)}, f(q) = q + x) f(${generateQuery(random, depth - 1)})`,
    () => `${generateQuery(random, depth - 1)} offset ${pick(random, DURATIONS)}`,
    () => `${generateQuery(random, depth - 1)} @ ${pick(random, ["0", "end()", "start()", "1234.5"])}`,
    () => `${generateQuery(random, depth - 1)} keep_metric_names`,
  ];
  return pick(random, forms)();
}

function args(random: Random, depth: number): string {
  return Array.from({ length: Math.floor(random() * 4) }, () =>
    random() < 0.3 ? JSON.stringify(pick(random, LABELS)) : generateQuery(random, depth - 1),
  ).join(", ");
}

function aggregate(random: Random, depth: number): string {
  const by =
    random() < 0.5 ? ` ${pick(random, ["by", "without"])} (${pick(random, LABELS)}, ${pick(random, LABELS)})` : "";
  const limit = random() < 0.1 ? " limit 3" : "";
  return `${pick(random, AGGREGATE_NAMES)}(${args(random, depth)})${by}${limit}`;
}

function binary(random: Random): string {
  const operator = pick(random, OPERATORS);
  if (random() < 0.7) return operator;
  const group = `${pick(random, ["on", "ignoring"])} (${pick(random, LABELS)})`;
  const join = random() < 0.5 ? ` ${pick(random, ["group_left", "group_right"])} (${pick(random, LABELS)})` : "";
  return `${operator}${random() < 0.2 ? " bool" : ""} ${group}${join}`;
}

function window(random: Random, depth: number): string {
  const inner = random() < 0.6 ? selector(random) : `(${generateQuery(random, depth - 1)})`;
  const forms = [
    "",
    `[${pick(random, DURATIONS)}]`,
    `[${pick(random, DURATIONS)}:${pick(random, DURATIONS)}]`,
    `[${pick(random, DURATIONS)}:]`,
  ];
  return `${inner}${pick(random, forms)}`;
}

function leaf(random: Random): string {
  if (random() < 0.3) return pick(random, NUMBERS);
  return random() < 0.1 ? JSON.stringify(pick(random, LABELS)) : selector(random);
}

function selector(random: Random): string {
  const filter = (): string =>
    `${pick(random, LABELS)}${pick(random, ["=", "!=", "=~", "!~"])}"${pick(random, ["", "x", "a|b", ".+"])}"`;
  const filters = Array.from({ length: Math.floor(random() * 3) }, filter).join(random() < 0.2 ? " or " : ", ");
  return `${pick(random, NAMES)}${filters === "" ? "" : `{${filters}}`}`;
}

/** The text with a few bytes changed, dropped, doubled or put in. */
export function mutate(random: Random, text: string): string {
  const bytes = [...Buffer.from(text)];
  for (let n = 1 + Math.floor(random() * 4); n > 0; n--) {
    const at = Math.floor(random() * (bytes.length + 1));
    const change = random();
    if (change < 0.3) bytes.splice(at, 1);
    else if (change < 0.6) bytes.splice(at, 0, Math.floor(random() * 256));
    else if (change < 0.8)
      bytes.splice(at, 0, ...Buffer.from(pick(random, ["(", "[", "{", '"', "\\", "offset", " by ", "0x", "`", "\n#"])));
    else bytes.splice(at, 0, ...bytes.slice(at, at + 8));
  }
  return Buffer.from(bytes).toString("utf8");
}
