/** Random MetricsQL that VictoriaMetrics 1.79.5 knows, with some mistakes in it. */
import {
  WINDOWS as ALL_WINDOWS,
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
} from "./choices.ts";

const words = (text: string): string[] => text.trim().split(/\s+/);

/** 1.79.5 lengthens windows that are shorter than one and a half scrapes. */
const WINDOWS = ALL_WINDOWS.filter((window) => window !== "20s");
const COUNTER_ROLLUPS = words(`
  rate increase irate resets increase_pure rollup_rate rollup_increase`);
const GAUGE_ROLLUPS = words(`
  avg_over_time min_over_time max_over_time sum_over_time sum2_over_time count_over_time stddev_over_time
  stdvar_over_time last_over_time first_over_time present_over_time delta idelta deriv deriv_fast ideriv changes
  ascent_over_time descent_over_time distinct_over_time geomean_over_time increases_over_time decreases_over_time
  integrate lag lifetime median_over_time mode_over_time range_over_time scrape_interval tfirst_over_time
  tlast_over_time tmax_over_time tmin_over_time tlast_change_over_time timestamp zscore_over_time rollup
  rollup_candlestick rollup_delta rollup_deriv default_rollup stale_samples_over_time
  timestamp_with_name histogram_over_time`);
const LIMIT_ROLLUPS = words(`
  count_eq_over_time count_gt_over_time count_le_over_time count_ne_over_time share_gt_over_time share_le_over_time`);
const MATHS = words(`
  abs ceil floor exp ln log2 log10 sqrt sgn sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh deg rad`);
const RANGES = words(
  "range_avg range_first range_last range_max range_min range_sum range_median running_avg running_max running_min running_sum",
);
const FILLERS = words("keep_last_value keep_next_value drop_common_labels");
const FOLDS = words("sum avg min max count group stddev stdvar sum2 geomean distinct median mode");
const BEST = words("topk bottomk topk_avg topk_max topk_min topk_median topk_last bottomk_avg bottomk_max bottomk_min");
/** Metrics with one series per instance. */
const SINGLE = [...COUNTERS, ...GAUGES].filter(({ own }) => own.length === 0 || own[0] === "device");
/** Sorting by these leaves no choice. */
const EVERY_LABEL = words("__name__ instance status mode minutes le device rollup app host region")
  .map((name) => `"${name}"`)
  .join(", ");
const ARITHMETIC = words("+ - * / % ^");
const COMPARISONS = words("== != > < >= <=");

export function metricsqlQuery(c: Choices): Asked {
  return c.asked(
    c.form([
      [12, () => series(c, 3)],
      [1, () => best(c)],
      [1, () => scalar(c, 2)],
      [1, () => mistake(c)],
    ]),
  );
}

function series(c: Choices, depth: number): string {
  if (depth <= 0) return moved(c, selector(c));
  return c.form([
    [2, () => moved(c, selector(c))],
    [6, () => rollup(c, depth)],
    [5, () => aggregate(c, depth)],
    [3, () => call(c, depth)],
    [2, () => overRange(c, depth)],
    [1, () => `${c.pick(FILLERS)}(${series(c, depth - 1)})`],
    [3, () => withNumber(c, depth)],
    [4, () => matched(c, depth)],
    [2, () => relabelled(c, depth)],
    [1, () => quantile(c)],
    [1, () => template(c, depth)],
    [0.5, () => `-${inner(c, depth)}`],
    [0.5, () => `${c.pick(["sort", "sort_desc"])}(${series(c, depth - 1)})`],
    [0.5, () => absent(c)],
    [0.5, () => `union(${series(c, depth - 1)}, ${series(c, depth - 1)})`],
  ]);
}

const inner = (c: Choices, depth: number): string => `(${series(c, depth - 1)})`;

function moved(c: Choices, text: string): string {
  const offset = c.chance(0.15) ? ` offset ${c.pick([...OFFSETS, "2i", "1.5m"])}` : "";
  const at = c.chance(0.1) ? ` @ ${c.pick([`${c.time_ms() / 1000}`, "start()", "end()", "(time() - 60)"])}` : "";
  return `${text}${offset}${at}`;
}

/** A window in brackets, or none: then the engine chooses. */
function window(c: Choices): string {
  return c.form([
    [3, () => `[${c.pick(WINDOWS)}]`],
    [1, () => `[${c.pick(["5i", "1.5m", "90"])}]`],
    [2, () => ""],
  ]);
}

function rollup(c: Choices, depth: number): string {
  const names = c.chance(0.1) ? " keep_metric_names" : "";
  const text = c.form([
    [4, () => `${c.pick(COUNTER_ROLLUPS)}(${moved(c, `${selector(c, c.pick(COUNTERS))}${window(c)}`)})`],
    [5, () => `${c.pick(GAUGE_ROLLUPS)}(${moved(c, `${selector(c, c.pick(GAUGES))}${window(c)}`)})`],
    [1, () => `${c.pick(GAUGE_ROLLUPS)}(${moved(c, `${selector(c)}${window(c)}`)})`],
    [2, () => `${c.pick([...COUNTER_ROLLUPS, ...GAUGE_ROLLUPS])}(${subquery(c, depth)})`],
    [1, () => `quantile_over_time(${c.pick(["0", "0.5", "0.95", "1"])}, ${range(c, depth)})`],
    [1, () => `quantiles_over_time("q", 0.1, 0.9, ${range(c, depth)})`],
    [1, () => `predict_linear(${range(c, depth)}, ${c.pick(["0", "60", "1h"])})`],
    [1, () => `${c.pick(LIMIT_ROLLUPS)}(${range(c, depth)}, ${c.pick(NUMBERS)})`],
    [0.5, () => `aggr_over_time(("min_over_time", "sum_over_time", "count_over_time"), ${range(c, depth)})`],
    [0.5, () => `duration_over_time(${range(c, depth)}, ${c.pick(["20s", "1m"])})`],
    [0.5, () => `hoeffding_bound_${c.pick(["lower", "upper"])}(0.9, ${range(c, depth)})`],
  ]);
  return text + names;
}

function range(c: Choices, depth: number): string {
  return c.chance(0.7) ? moved(c, `${selector(c)}${window(c)}`) : subquery(c, depth);
}

function subquery(c: Choices, depth: number): string {
  return moved(c, `${inner(c, Math.min(depth, 2))}[${c.pick([...SUBQUERIES, "10m250ms:", "10i:1i"])}]`);
}

/** Functions of all steps. 1.79.5 leaves gaps open and drops names, so there are neither. */
function overRange(c: Choices, depth: number): string {
  const arg = `(label_del(${series(c, depth - 1)}, "__name__") default 0)`;
  const phi = c.pick(["0.5", "0.9"]);
  return c.chance(0.1) ? `range_quantile(${phi}, ${arg})` : `${c.pick(RANGES)}(${arg})`;
}

/** The best of all series: outside of everything else, because which of two equal ones is better is nowhere said. */
function best(c: Choices): string {
  const arg = series(c, 2);
  return c.form([
    [2, () => `${c.pick(BEST)}(${c.pick(["1", "3", "0", "50"])}, ${arg})${grouping(c)}`],
    [1, () => `topk_avg(${c.pick(["1", "2"])}, ${arg}, "other")${grouping(c)}`],
    [1, () => `outliersk(2, ${selector(c, c.pick(COUNTERS))})`],
  ]);
}

function aggregate(c: Choices, depth: number): string {
  const by = grouping(c);
  const arg = series(c, depth - 1);
  return c.form([
    [6, () => `${c.pick(FOLDS)}(${arg})${by}`],
    [1, () => `${c.pick(FOLDS)}${by} (${arg})`],
    [1, () => `sum(${arg}, ${series(c, depth - 1)})${by}`],
    [1, () => `quantile(${c.pick(["0.1", "0.5", "0.99"])}, ${arg})${by}`],
    [0.5, () => `quantiles("phi", 0.2, 0.8, ${arg})${by}`],
    [1, () => `count_values("v", round(clamp_max(${arg}, 1e6), 100))${by}`],
    [0.5, () => `zscore(label_del(${arg}, "__name__"))${by}`],
    [0.5, () => `histogram(round(${arg}, 7)) by (${c.some(COMMON, 2).join(", ")})`],
    [0.5, () => `mad(${arg})${by}`],
  ]);
}

function call(c: Choices, depth: number): string {
  const arg = series(c, depth - 1);
  const names = c.chance(0.1) ? " keep_metric_names" : "";
  return c.form([
    [4, () => `${c.pick(MATHS)}(${arg})${names}`],
    [1, () => `clamp(${arg}, ${c.pick(NUMBERS)}, ${c.pick(NUMBERS)})`],
    [1, () => `${c.pick(["clamp_min", "clamp_max"])}(${arg}, ${scalar(c, 1)})`],
    [1, () => `round(${arg}, ${c.pick(["0.1", "5", "0.25", "100"])})`],
    [0.5, () => `smooth_exponential(${arg}, 0.5)`],
    [0.5, () => `limit_offset(2, 1, sort_by_label(${arg}, ${EVERY_LABEL}))`],
    [0.5, () => `hour(timestamp(${selector(c)}))`],
  ]);
}

function withNumber(c: Choices, depth: number): string {
  const number = c.chance(0.7) ? c.pick(NUMBERS) : `(${scalar(c, depth - 1)})`;
  const op = c.form([
    [4, () => c.pick(ARITHMETIC)],
    [2, () => `${c.pick(COMPARISONS)}${c.chance(0.4) ? " bool" : ""}`],
    [1, () => c.pick(["default", "if", "ifnot"])],
  ]);
  return c.chance(0.8)
    ? `${inner(c, depth)} ${op} ${number}`
    : `${c.pick(["2", "10", "0.5", "1Ki"])} ${op} ${inner(c, depth)}`;
}

function matched(c: Choices, depth: number): string {
  const by = ` by (${c.some(COMMON, 3).join(", ")})`;
  const metric = anyMetric(c);
  const op = c.form([
    [3, () => c.pick(ARITHMETIC)],
    [2, () => `${c.pick(COMPARISONS)}${c.chance(0.3) ? " bool" : ""}`],
    [2, () => c.pick(["default", "if", "ifnot"])],
  ]);
  // Logical operators know no group_left.
  const join = c.pick([...ARITHMETIC, ...COMPARISONS]);
  const set = c.pick(["and", "or", "unless"]);
  const own = labelsOf(metric).slice(COMMON.length);
  return c.form([
    [2, () => `${selector(c, metric)} ${op} ${moved(c, selector(c, metric))}`],
    [2, () => `sum(${series(c, depth - 1)})${by} ${op} max(${series(c, depth - 1)})${by}`],
    [
      2,
      () =>
        `${selector(c, c.pick(SINGLE))} ${join} on (${c.pick(["instance", "host, app"])}) ${selector(c, c.pick(SINGLE))}`,
    ],
    [2, () => `${selector(c, metric)} ${join} ignoring (${own.join(", ")}) group_left ${selector(c, c.pick(GAUGES))}`],
    [2, () => `${selector(c, metric)} ${join} on (instance) group_left (${c.pick(["", "minutes"])}) svc_instance_up`],
    [1, () => `svc_instance_up ${join} on (instance) group_right (${c.pick(["", "region"])}) ${selector(c, metric)}`],
    [2, () => `${selector(c, metric)} ${set} ${selector(c, metric)}`],
    [2, () => `${inner(c, depth)} ${set} on (${c.some([...COMMON, "status"], 2).join(", ")}) ${inner(c, depth)}`],
    [1, () => `${inner(c, depth)} ${op} ${inner(c, depth)}`],
  ]);
}

function relabelled(c: Choices, depth: number): string {
  const arg = series(c, depth - 1);
  const [to, from] = [c.pick(["app", "new", "region"]), c.pick(["app", "instance", "status", "missing"])];
  const there = c.pick(COMMON);
  return c.form([
    [1, () => `label_set(${arg}, "${to}", "${c.pick(["x", ""])}", "__name__", "${c.pick(["renamed", ""])}")`],
    [1, () => `label_del(${arg}, "${to}", "${from}")`],
    [1, () => `label_keep(${arg}, "${to}", "${from}")`],
    [1, () => `label_copy(${arg}, "${from}", "${to}")`],
    [1, () => `label_move(${arg}, "${from}", "${to}")`],
    // 1.79.5 spoils labels that are not there with these.
    [1, () => `label_map(${selector(c)}, "${there}", "app-000", "first", "fra", "there")`],
    [1, () => `label_${c.pick(["uppercase", "lowercase"])}(${selector(c)}, "${there}")`],
    [1, () => `label_replace(${selector(c)}, "${to}", "${c.pick(["$1", "x-$1", ""])}", "${there}", "(.*)")`],
    [1, () => `label_join(${selector(c)}, "${to}", "${c.pick(["-", ","])}", "app", "${there}")`],
    [1, () => `label_transform(${selector(c)}, "${there}", "[0-9]+", "<$0>")`],
    [1, () => `label_value(${arg}, "${c.pick(["status", "le", "minutes"])}")`],
    [1, () => `label_${c.pick(["match", "mismatch"])}(${arg}, "${from}", "${c.pick([".*0", "app-.+", "2.."])}")`],
    [1, () => `alias(${arg}, "alias")`],
  ]);
}

function quantile(c: Choices): string {
  const buckets = selector(c, BUCKETS);
  const by = c.pick(["le", "le, app", "le, region"]);
  const sum = `sum(${c.pick(["rate", "increase"])}(${buckets}${window(c)})) by (${by})`;
  return c.form([
    [3, () => `histogram_quantile(${c.pick(["0.5", "0.9", "0.99"])}, ${sum})`],
    [1, () => `histogram_share(${c.pick(["0.1", "0.3", "7"])}, ${sum})`],
    [1, () => `histogram_${c.pick(["avg", "stddev", "stdvar"])}(${sum})`],
    [1, () => `histogram_quantiles("phi", 0.5, 0.9, ${sum})`],
    [1, () => `prometheus_buckets(${sum})`],
  ]);
}

function template(c: Choices, depth: number): string {
  const body = series(c, depth - 1);
  return c.pick([
    `WITH (x = ${body}) x + x`,
    `WITH (f(a, b) = sum(a) by (app) / sum(b) by (app)) f(${body}, ${selector(c)})`,
    `WITH (common = {region=~"fra|iad"}) ${anyMetric(c).name}{common, app!=""}`,
    `WITH (w = 5m, x = rate(svc_instance_cpu[5m])) x / 2`,
  ]);
}

function absent(c: Choices): string {
  const missing = c.pick(['nothing{app=~"x"}', anyMetric(c).name]);
  return c.chance(0.5) ? `absent(${c.pick([missing, 'nothing{app="x"}'])})` : 'absent_over_time(nothing{app=~"x"}[5m])';
}

function scalar(c: Choices, depth: number): string {
  if (depth <= 0) return c.pick([...NUMBERS, "1Ki", "2.5M"]);
  return c.form([
    [4, () => c.pick(NUMBERS)],
    [1, () => c.pick(["time()", "pi()", "step()", "start()", "end()", "1h"])],
    [2, () => `scalar(${series(c, depth - 1)})`],
    [1, () => `(${scalar(c, depth - 1)} ${c.pick([...ARITHMETIC, "default"])} ${scalar(c, depth - 1)})`],
    [1, () => `(${scalar(c, depth - 1)} ${c.pick(COMPARISONS)} bool ${scalar(c, depth - 1)})`],
    [0.5, () => `-${scalar(c, 0)}`],
  ]);
}

/** What must be refused, or looks as if. */
function mistake(c: Choices): string {
  const arg = series(c, 1);
  return c.pick([
    `unknown_function(${arg})`,
    `sum by (app) by (app) (${arg})`,
    `(${arg}`,
    `${arg})`,
    `topk("1", ${arg})`,
    `label_set(${arg}, "a")`,
    `label_replace(${arg}, "new", "$1", "app", "(")`,
    `clamp(${arg}, 1)`,
    `${selector(c)}[5m]`,
    `"text"`,
    `${arg} + on (app) group_left on (app) ${arg}`,
    `${arg} or on (app) group_left ${arg}`,
    `quantile_over_time(${arg})`,
    `WITH (f(a) = a) f(1, 2)`,
    `rate(${selector(c)}[5m] offset)`,
    `{app="app-000", app="app-001"}`,
    `1 ${c.pick(COMPARISONS)} 2`,
  ]);
}
