/** Random PromQL that Prometheus 2.42 knows: well-typed for the most part, with some mistakes in it. */
import {
  type Asked,
  anyMetric,
  BUCKETS,
  type Choices,
  COMMON,
  COUNTERS,
  GAUGES,
  grouping,
  labelsOf,
  NUMBERS,
  OFFSETS,
  SUBQUERIES,
  selector,
  WINDOWS,
} from "./choices.ts";

const words = (text: string): string[] => text.trim().split(/\s+/);

const COUNTER_ROLLUPS = words("rate increase irate resets changes");
const GAUGE_ROLLUPS = words(`
  avg_over_time min_over_time max_over_time sum_over_time count_over_time stddev_over_time stdvar_over_time
  last_over_time present_over_time delta idelta deriv changes`);
const MATHS = words(`
  abs ceil floor exp ln log2 log10 sqrt sgn sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh deg rad`);
const DATES = words("day_of_month day_of_week day_of_year days_in_month hour minute month year");
const FOLDS = words("sum avg min max count group stddev stdvar");
const ARITHMETIC = words("+ - * / % ^ atan2");
const COMPARISONS = words("== != > < >= <=");

export function promqlQuery(c: Choices): Asked {
  return c.asked(
    c.form([
      [12, () => vector(c, 3)],
      [1, () => best(c)],
      [1, () => scalar(c, 2)],
      [1, () => mistake(c)],
    ]),
  );
}

function vector(c: Choices, depth: number): string {
  if (depth <= 0) return moved(c, selector(c));
  return c.form([
    [2, () => moved(c, selector(c))],
    [5, () => rollup(c, depth)],
    [5, () => aggregate(c, depth)],
    [3, () => call(c, depth)],
    [3, () => withNumber(c, depth)],
    [4, () => matched(c, depth)],
    [1, () => relabelled(c, depth)],
    [1, () => quantile(c)],
    [0.5, () => `-${inner(c, depth)}`],
    [0.5, () => `${c.pick(["sort", "sort_desc"])}(${vector(c, depth - 1)})`],
    [0.5, () => absent(c)],
    [0.5, () => `vector(${scalar(c, depth - 1)})`],
  ]);
}

const inner = (c: Choices, depth: number): string => `(${vector(c, depth - 1)})`;

/** A selector or a range, now and then at another time. */
function moved(c: Choices, text: string): string {
  const offset = c.chance(0.15) ? ` offset ${c.pick(OFFSETS)}` : "";
  const at = c.chance(0.1) ? ` @ ${c.pick([`${c.time_ms() / 1000}`, "start()", "end()"])}` : "";
  return `${text}${c.chance(0.5) ? offset + at : at + offset}`;
}

function rollup(c: Choices, depth: number): string {
  return c.form([
    [3, () => `${c.pick(COUNTER_ROLLUPS)}(${moved(c, `${selector(c, c.pick(COUNTERS))}[${c.pick(WINDOWS)}]`)})`],
    [4, () => `${c.pick(GAUGE_ROLLUPS)}(${moved(c, `${selector(c, c.pick(GAUGES))}[${c.pick(WINDOWS)}]`)})`],
    [1, () => `${c.pick(GAUGE_ROLLUPS)}(${moved(c, `${selector(c)}[${c.pick(WINDOWS)}]`)})`],
    [2, () => `${c.pick([...COUNTER_ROLLUPS, ...GAUGE_ROLLUPS])}(${subquery(c, depth)})`],
    [1, () => `quantile_over_time(${c.pick(["0", "0.5", "0.95", "1", "-1", "2"])}, ${range(c, depth)})`],
    [1, () => `predict_linear(${unmoved(c, depth)}, ${c.pick(["0", "60", "3600"])})`],
    [0.5, () => `holt_winters(${range(c, depth)}, ${c.pick(["0.3", "0.5"])}, ${c.pick(["0.1", "0.7"])})`],
  ]);
}

function range(c: Choices, depth: number): string {
  return c.chance(0.7) ? moved(c, `${selector(c)}[${c.pick(WINDOWS)}]`) : subquery(c, depth);
}

/** 2.42 moves the `@` of predict_linear's range with every step. */
function unmoved(c: Choices, depth: number): string {
  return c.chance(0.7)
    ? `${selector(c)}[${c.pick(WINDOWS)}]`
    : `${inner(c, Math.min(depth, 2))}[${c.pick(SUBQUERIES)}]`;
}

function subquery(c: Choices, depth: number): string {
  return moved(c, `${inner(c, Math.min(depth, 2))}[${c.pick(SUBQUERIES)}]`);
}

function aggregate(c: Choices, depth: number): string {
  const by = grouping(c);
  const arg = vector(c, depth - 1);
  return c.form([
    [6, () => `${c.pick(FOLDS)}${by} (${arg})`],
    [1, () => `${c.pick(FOLDS)}(${arg})${by}`],
    [1, () => `quantile${by} (${c.pick(["0.1", "0.5", "0.99", "-1", "1.5"])}, ${arg})`],
    [1, () => `count_values${by} ("v", round(clamp_max(${arg}, 1e6), 100))`],
  ]);
}

/** The best of all series: outside of everything else, because which of two equal ones is better is nowhere said. */
function best(c: Choices): string {
  return `${c.pick(["topk", "bottomk"])}${grouping(c)} (${c.pick(["1", "3", "0", "-1", "50"])}, ${vector(c, 2)})`;
}

function call(c: Choices, depth: number): string {
  const arg = vector(c, depth - 1);
  return c.form([
    [4, () => `${c.pick(MATHS)}(${arg})`],
    [
      1,
      () =>
        `${c.pick(DATES)}(${c.pick([selector(c), "", `vector(time() - ${c.below(1e5)} * 86400)`, "timestamp(svc_instance_up)"])})`,
    ],
    [1, () => `clamp(${arg}, ${c.pick(NUMBERS)}, ${c.pick(NUMBERS)})`],
    [1, () => `${c.pick(["clamp_min", "clamp_max"])}(${arg}, ${scalar(c, 1)})`],
    [1, () => `round(${arg}, ${c.pick(["0.1", "5", "0.25", "100"])})`],
    [1, () => `timestamp(${arg})`],
  ]);
}

function withNumber(c: Choices, depth: number): string {
  const number = c.chance(0.7) ? c.pick(NUMBERS) : `(${scalar(c, depth - 1)})`;
  const op = c.form([
    [2, () => c.pick(ARITHMETIC)],
    [1, () => `${c.pick(COMPARISONS)}${c.chance(0.4) ? " bool" : ""}`],
  ]);
  return c.chance(0.7) ? `${inner(c, depth)} ${op} ${number}` : `${number} ${op} ${inner(c, depth)}`;
}

/** Two vectors with an operator between them, made so that something usually matches. */
function matched(c: Choices, depth: number): string {
  const by = ` by (${c.some(COMMON, 3).join(", ")})`;
  const metric = anyMetric(c);
  const op = c.form([
    [3, () => c.pick(ARITHMETIC)],
    [2, () => `${c.pick(COMPARISONS)}${c.chance(0.3) ? " bool" : ""}`],
  ]);
  const set = c.pick(["and", "or", "unless"]);
  const own = labelsOf(metric).slice(COMMON.length);
  return c.form([
    [2, () => `${selector(c, metric)} ${op} ${moved(c, selector(c, metric))}`],
    [2, () => `sum${by} (${vector(c, depth - 1)}) ${op} max${by} (${vector(c, depth - 1)})`],
    [2, () => `${selector(c)} ${op} on (${c.pick(["instance", "app", "instance, status"])}) ${selector(c)}`],
    [2, () => `${selector(c, metric)} ${op} ignoring (${own.join(", ")}) group_left ${selector(c, c.pick(GAUGES))}`],
    [2, () => `${selector(c, metric)} ${op} on (instance) group_left (${c.pick(["", "minutes"])}) svc_instance_up`],
    [1, () => `svc_instance_up ${op} on (instance) group_right (${c.pick(["", "region"])}) ${selector(c, metric)}`],
    [2, () => `${selector(c, metric)} ${set} ${selector(c, metric)}`],
    [2, () => `${inner(c, depth)} ${set} on (${c.some([...COMMON, "status"], 2).join(", ")}) ${inner(c, depth)}`],
    [1, () => `${inner(c, depth)} ${set} ignoring (${c.some([...COMMON, "le"], 2).join(", ")}) ${inner(c, depth)}`],
    [1, () => `${inner(c, depth)} ${op} ${inner(c, depth)}`],
  ]);
}

function relabelled(c: Choices, depth: number): string {
  const arg = vector(c, depth - 1);
  const [to, from] = [c.pick(["app", "new", "region"]), c.pick(["app", "instance", "status", "missing"])];
  return c.form([
    [2, () => `label_replace(${arg}, "${to}", "${c.pick(["$1", "x-$1", "fixed", ""])}", "${from}", "(.*)")`],
    [1, () => `label_replace(${arg}, "${to}", "$2$1", "${from}", "(.).*?([0-9]+)")`],
    [1, () => `label_join(${arg}, "${to}", "${c.pick(["-", "", ","])}", "app", "${from}")`],
  ]);
}

function quantile(c: Choices): string {
  const buckets = selector(c, BUCKETS);
  const by = c.pick(["le", "le, app", "le, region", "app"]);
  const phi = c.pick(["0", "0.5", "0.9", "0.99", "1", "-1", "2"]);
  return c.form([
    [3, () => `histogram_quantile(${phi}, sum by (${by}) (rate(${buckets}[${c.pick(WINDOWS)}])))`],
    [1, () => `histogram_quantile(${phi}, ${buckets})`],
    [1, () => `histogram_quantile(${phi}, rate(${buckets}[${c.pick(WINDOWS)}]))`],
  ]);
}

function absent(c: Choices): string {
  const missing = c.pick(['nothing{app="x"}', 'nothing{app="x",app="y"}', 'nothing{app=~"x"}', selector(c)]);
  return c.chance(0.5) ? `absent(${missing})` : `absent_over_time(${missing}[5m])`;
}

function scalar(c: Choices, depth: number): string {
  if (depth <= 0) return c.pick(NUMBERS);
  return c.form([
    [4, () => c.pick(NUMBERS)],
    [1, () => c.pick(["time()", "pi()"])],
    [2, () => `scalar(${vector(c, depth - 1)})`],
    [1, () => `${scalar(c, depth - 1)} ${c.pick(ARITHMETIC)} ${scalar(c, depth - 1)}`],
    [1, () => `(${scalar(c, depth - 1)} ${c.pick(COMPARISONS)} bool ${scalar(c, depth - 1)})`],
    [0.5, () => `-${scalar(c, 0)}`],
  ]);
}

/** What must be refused, or looks as if. */
function mistake(c: Choices): string {
  const arg = vector(c, 1);
  return c.pick([
    `rate(${selector(c)})`,
    `sum(${selector(c)}[5m])`,
    `${arg} and 1`,
    `1 ${c.pick(COMPARISONS)} 2`,
    `${c.pick(["", "x"])}{app=~".*"}`,
    `rate(${selector(c)}[5m] offset)`,
    `topk("1", ${arg})`,
    `label_replace(${arg}, "a-b", "", "app", "")`,
    `label_replace(${arg}, "new", "$1", "app", "(")`,
    `unknown_function(${arg})`,
    `sum by (app) by (app) (${arg})`,
    `(${arg}`,
    `${arg})`,
    `${arg} + on (app) group_left on (app) ${arg}`,
    `${selector(c)}[5m]`,
    `${selector(c)}[0s]`,
    `"text"`,
    `${arg} == bool ${arg}`,
    `sum(${arg}) offset 5m`,
    `clamp(${arg}, 1)`,
    `{app="app-000", app="app-001"}`,
    `count_values("a b", ${arg})`,
    `${selector(c)} @ end() @ start()`,
    `${arg} or on (app) group_left ${arg}`,
  ]);
}
