/** Random queries over the same samples here and at a peer, and the differences that have a name. */
import type { Dialect } from "#metrics/promql/ast.ts";
import { instant, QueryError, range } from "#metrics/promql/engine.ts";
import { type MemorySeries, memorySource } from "#metrics/promql/memory-source.ts";
import type { QueryResult } from "#metrics/promql/results.ts";
import { type Asked, ask, type Peer, type PeerAnswer, seriesKey } from "./peers.ts";

type Random = () => number;
type Pick = <T>(list: readonly T[]) => T;

/** Two hours at 15 s: counters that restart, a gap, gauges with holes, histograms, series that end. */
export const EPOCH_MS = 1_794_600_000_000;

export function differentialData(random: Random): MemorySeries[] {
  const out: MemorySeries[] = [];
  const add = (labels: string, value: (i: number) => number | undefined): void => {
    const kept = Array.from({ length: 480 }, (_, i) => [EPOCH_MS + i * 15_000, value(i)] as const).filter(
      ([, v]) => v !== undefined,
    );
    out.push({
      labels: labels.split(" "),
      timestamps: Float64Array.from(kept, ([time]) => time),
      values: Float64Array.from(kept, ([, v]) => v as number),
    });
  };
  for (let n = 0; n < 4; n++) {
    let total = 0;
    add(`__name__ requests_total app a${n % 2} i ${n}`, (i) => {
      total = random() < 0.02 ? 0 : total + Math.floor(random() * 20);
      return n === 3 && i > 100 && i < 180 ? undefined : total;
    });
    add(`__name__ temp app a${n % 2} i ${n}`, () =>
      n === 1 && random() < 0.3 ? undefined : Math.round(random() * 1000) / 10 - 30,
    );
  }
  for (const [b, le] of ["0.1", "0.5", "1", "5", "+Inf"].entries())
    add(`__name__ lat_bucket app a0 le ${le}`, (i) => i * (b + 1));
  add("__name__ info app a0 ver v1", () => 1);
  add("__name__ info app a1 ver v2", () => 1);
  add("__name__ single", (i) => (i < 10 ? 5 : undefined));
  return out;
}

const words = (text: string): string[] => text.trim().split(/\s+/);
const RANGES =
  words(`rate increase delta irate idelta changes resets avg_over_time min_over_time max_over_time sum_over_time
  count_over_time stddev_over_time stdvar_over_time last_over_time present_over_time deriv absent_over_time`);
const ROLLUPS = words(`rate increase delta irate ideriv idelta changes resets avg_over_time min_over_time max_over_time
  sum_over_time count_over_time stddev_over_time first_over_time last_over_time present_over_time deriv deriv_fast
  lag lifetime scrape_interval tmin_over_time tmax_over_time median_over_time mode_over_time integrate increases_over_time
  ascent_over_time descent_over_time zscore_over_time range_over_time increase_pure changes_prometheus mad_over_time`);
const SELECTORS = [
  "requests_total",
  'requests_total{app="a0"}',
  "temp",
  'temp{i!="1"}',
  "info",
  "single",
  "lat_bucket",
  '{__name__=~"temp|info"}',
  "none",
];
const VECTOR_CALLS = words("abs ceil floor exp sqrt ln log2 log10 round sin cos tanh atan deg");

/** PromQL that both understand, windows and steps at odd moments. */
export function strictQuery(pick: Pick, depth: number): string {
  const at = pick([
    "",
    "",
    "",
    " offset 3m",
    " offset -2m",
    ` @ ${EPOCH_MS / 1000 + 2000}.5`,
    " @ start()",
    " @ end()",
  ]);
  if (depth <= 0) return pick(SELECTORS) + at;
  const inner = (): string => strictQuery(pick, depth - 1);
  const window = (): string => `${pick(SELECTORS)}[${pick(["1m", "5m", "17m", "90s"])}]${at}`;
  const forms: (() => string)[] = [
    () => pick(SELECTORS) + at,
    () => `${pick(RANGES)}(${window()})`,
    () => `max_over_time(${inner()}[20m:37s]${at})`,
    () => `quantile_over_time(0.3, ${window()})`,
    () =>
      `${pick(words("sum avg min max count group"))}${pick(["", " by (app)", " without (i)", " by (i, le)"])}(${inner()})`,
    () => `quantile(0.7, ${inner()})`,
    () => `${pick(VECTOR_CALLS)}(${inner()})`,
    () => `clamp(${inner()}, 1, 20)`,
    () => `timestamp(${inner()})`,
    () =>
      `${inner()} ${pick(words("+ - * / % ^ > < == != >= and or unless atan2"))} ${pick(["", "on(app) ", "ignoring(i) ", "on(app,i) "])}${inner()}`,
    () => `${inner()} ${pick(["*", "/", ">"])} on(app) group_left(ver) info`,
    () => `${inner()} ${pick(["+", "-", "/", "%", ">", "< bool"])} ${pick(["2", "-1.5", "scalar(single)"])}`,
    () => `-${inner()}`,
    () => "histogram_quantile(0.9, sum by (le) (rate(lat_bucket[5m])))",
    () => `label_replace(${inner()}, "x", "$1-$0", "app", "a(.)")`,
    () => `absent(${inner()})`,
  ];
  return `(${pick(forms)()})`;
}

/** MetricsQL that the packaged version understands. */
export function metricsqlQuery(pick: Pick, depth: number): string {
  if (depth <= 0) return pick(SELECTORS);
  const inner = (): string => metricsqlQuery(pick, depth - 1);
  const window = (): string => `${pick(SELECTORS)}${pick(["", "[5m]", "[10m] offset 3m", "[20m:]", "[5m:1m]"])}`;
  const forms: (() => string)[] = [
    () => pick(SELECTORS),
    () => `${pick(ROLLUPS)}(${window()})`,
    () => `quantile_over_time(0.9, ${window()})`,
    () =>
      `${pick(words("sum avg min max count group median stddev sum2 distinct"))}(${inner()})${pick(["", " by (app)", " without (i)"])}`,
    () => `${pick(["topk_avg", "bottomk_max", "topk_last"])}(1, ${inner()}, "other")`,
    () => `${pick(VECTOR_CALLS)}(${inner()})`,
    () => `label_set(${inner()}, "x", "y", "i", "")`,
    () => `drop_common_labels(${inner()})`,
    () => `running_sum(${inner()})`,
    () => `keep_last_value(${inner()})`,
    () =>
      `${inner()} ${pick(words("+ - * / > < and unless default if ifnot"))} ${pick(["", "on(app) ", "ignoring(i) "])}${inner()}`,
    () => `${inner()} ${pick(["+", "*", ">", "default"])} ${pick(["2", "1Ki", "1h"])}`,
    () => `WITH (q = ${inner()}) q / sum(q)`,
  ];
  return `(${pick(forms)()})`;
}

export interface Explanation {
  name: string;
  fits: (query: string, difference: string) => boolean;
}

export interface Tally {
  equal: number;
  bothFail: number;
  explained: Map<string, number>;
  unexplained: string[];
}

export interface Plan {
  peer: Peer;
  dialect: Dialect;
  data: MemorySeries[];
  random: Random;
  queries: number;
  generate: (pick: Pick, depth: number) => string;
  explanations: Explanation[];
}

export async function compareWithPeer(plan: Plan): Promise<Tally> {
  const { random, dialect } = plan;
  const source = memorySource(plan.data);
  const pick: Pick = (list) => list[Math.floor(random() * list.length)] as (typeof list)[number];
  const tally: Tally = { equal: 0, bothFail: 0, explained: new Map(), unexplained: [] };
  for (let n = 0; n < plan.queries; n++) {
    const start_ms = EPOCH_MS + 1_507_003 + Math.floor(random() * 3000) * 1000;
    const step_ms = pick([30_000, 61_000, 120_000]);
    const asked: Asked = {
      query: plan.generate(pick, 1 + (n % 3)),
      instant: n % 2 === 0,
      start_ms,
      end_ms: start_ms + 600_000,
      step_ms,
    };
    const [theirs, ours] = [await ask(plan.peer, asked), evaluateHere(asked, dialect, source)];
    if ("error" in theirs && "error" in ours) tally.bothFail++;
    else count(tally, plan.explanations, asked.query, difference(theirs, ours));
  }
  return tally;
}

function count(tally: Tally, explanations: Explanation[], query: string, found: string | undefined): void {
  if (found === undefined) {
    tally.equal++;
    return;
  }
  const known = explanations.find(({ fits }) => fits(query, found));
  if (known) tally.explained.set(known.name, (tally.explained.get(known.name) ?? 0) + 1);
  else tally.unexplained.push(`${query}\n  ${found}`);
}

function evaluateHere(asked: Asked, dialect: Dialect, source: ReturnType<typeof memorySource>): PeerAnswer {
  const { query, start_ms, end_ms, step_ms } = asked;
  try {
    const result = asked.instant
      ? instant({ query, dialect, source, time_ms: start_ms })
      : range({ query, dialect, source, start_ms, end_ms, step_ms });
    return { points: pointsOf(result) };
  } catch (error) {
    if (error instanceof QueryError) return { error: error.message };
    throw error;
  }
}

function pointsOf({ data }: QueryResult): Map<string, number> {
  const points = new Map<string, number>();
  if (data.type === "scalar") points.set("scalar", data.value);
  if (data.type !== "vector" && data.type !== "matrix") return points;
  for (const { labels, timestamps, values } of data.series) {
    const pairs = Array.from({ length: labels.length / 2 }, (_, i): [string, string] => [
      labels[2 * i] ?? "",
      labels[2 * i + 1] ?? "",
    ]);
    const key = seriesKey(pairs);
    for (let i = 0; i < values.length; i++) points.set(`${key}@${timestamps[i]}`, values[i] as number);
  }
  return points;
}

function close(a: number, b: number): boolean {
  if (Object.is(a, b) || a === b) return true;
  return Math.abs(a - b) <= 1e-8 * (Math.abs(a) + Math.abs(b)) || (Math.abs(a) < 1e-9 && Math.abs(b) < 1e-9);
}

/** The first difference in words, undefined when there is none. */
function difference(theirs: PeerAnswer, ours: PeerAnswer): string | undefined {
  if ("error" in theirs) return `they fail: ${theirs.error}`;
  if ("error" in ours) return `we fail: ${ours.error}`;
  for (const key of new Set([...theirs.points.keys(), ...ours.points.keys()])) {
    const [a, b] = [theirs.points.get(key), ours.points.get(key)];
    if (a === undefined || b === undefined || !close(a, b)) return `${key}: they ${a}, we ${b}`;
  }
  return undefined;
}
