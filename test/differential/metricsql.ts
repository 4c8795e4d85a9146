/** MetricsQL as far as VictoriaMetrics 1.79.5 knows it. */
import {
  anyMetric,
  BUCKETS,
  COMMON,
  COUNTERS,
  type Form,
  GAUGES,
  grouping,
  NUMBERS,
  OFFSETS,
  SUBQUERIES,
  selector,
  WINDOWS,
  words,
} from "./choices.ts";
import type { DialectOfQueries, Grammar } from "./grammar.ts";

/** 1.79.5 lengthens windows that are shorter than one and a half scrapes. Half of the time the engine chooses. */
const CHOSEN = [...WINDOWS.filter((window) => window !== "20s"), "5i", "1.5m", "90"].map((window) => `[${window}]`);
const LIMIT_ROLLUPS = words(`
  count_eq_over_time count_gt_over_time count_le_over_time count_ne_over_time share_gt_over_time share_le_over_time`);
const RANGES = words(`
  range_avg range_first range_last range_max range_min range_sum range_median
  running_avg running_max running_min running_sum`);
const FILLERS = words("keep_last_value keep_next_value drop_common_labels");
/** Metrics with one series per instance. */
const SINGLE = [...COUNTERS, ...GAUGES].filter(({ own }) => own.length === 0 || own[0] === "device");
/** Sorting by these leaves no choice. */
const EVERY_LABEL = words("__name__ instance status mode minutes le device rollup app host region")
  .map((name) => `"${name}"`)
  .join(", ");

export const METRICSQL: DialectOfQueries = {
  counter_rollups: words("rate increase irate resets increase_pure rollup_rate rollup_increase"),
  gauge_rollups: words(`
    avg_over_time min_over_time max_over_time sum_over_time sum2_over_time count_over_time stddev_over_time
    stdvar_over_time last_over_time first_over_time present_over_time delta idelta deriv deriv_fast ideriv changes
    ascent_over_time descent_over_time distinct_over_time geomean_over_time increases_over_time decreases_over_time
    integrate lag lifetime median_over_time mode_over_time range_over_time scrape_interval tfirst_over_time
    tlast_over_time tmax_over_time tmin_over_time tlast_change_over_time timestamp zscore_over_time rollup
    rollup_candlestick rollup_delta rollup_deriv default_rollup stale_samples_over_time
    timestamp_with_name histogram_over_time`),
  maths: words(`
    abs ceil floor exp ln log2 log10 sqrt sgn sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh deg rad`),
  folds: words("sum avg min max count group stddev stdvar sum2 geomean distinct median mode"),
  best: words("topk bottomk topk_avg topk_max topk_min topk_median topk_last bottomk_avg bottomk_max bottomk_min"),
  arithmetic: words("+ - * / % ^"),
  logical: words("default if ifnot"),
  windows: [...CHOSEN, ...CHOSEN.map(() => "")],
  offsets: [...OFFSETS, "2i", "1.5m"],
  subqueries: [...SUBQUERIES, "10m250ms:", "10i:1i"],
  ats: ["start()", "end()", "(time() - 60)"],
  counts: ["1", "3", "0", "50"],
  left_numbers: ["2", "10", "0.5", "1Ki"],
  phis: ["0.1", "0.5", "0.9", "0.99"],
  bucket_groups: ["le", "le, app", "le, region"],
  scalars: ["time()", "pi()", "step()", "start()", "end()", "1h", "1Ki", "2.5M"],
  suffix: " keep_metric_names",
  forms: {
    vector: (g, depth) => [
      [2, () => overRange(g, depth)],
      [1, () => `${g.c.pick(FILLERS)}(${g.vector(depth - 1)})`],
      [1, () => template(g, depth)],
      [0.5, () => `union(${g.vector(depth - 1)}, ${g.vector(depth - 1)})`],
    ],
    rollup: rollups,
    best: (g, depth) => [
      [1, () => `topk_avg(${g.c.pick(["1", "2"])}, ${g.vector(depth)}, "other")${grouping(g.c)}`],
      [1, () => `outliersk(2, ${selector(g.c, g.c.pick(COUNTERS))})`],
    ],
    aggregate: (g, depth) => {
      const arg = g.vector(depth - 1);
      const by = grouping(g.c);
      return [
        [1, () => `sum(${arg}, ${g.vector(depth - 1)})${by}`],
        [0.5, () => `quantiles("phi", 0.2, 0.8, ${arg})${by}`],
        [0.5, () => `zscore(label_del(${arg}, "__name__"))${by}`],
        [0.5, () => `histogram(round(${arg}, 7)) by (${g.c.some(COMMON, 2).join(", ")})`],
        [0.5, () => `mad(${arg})${by}`],
      ];
    },
    call: (g, depth) => [
      [0.5, () => `smooth_exponential(${g.vector(depth - 1)}, 0.5)`],
      [0.5, () => `limit_offset(2, 1, sort_by_label(${g.vector(depth - 1)}, ${EVERY_LABEL}))`],
      [0.5, () => `hour(timestamp(${selector(g.c)}))`],
    ],
    matched: (g) => {
      const one = (): string => selector(g.c, g.c.pick(SINGLE));
      return [[2, () => `${one()} ${g.operator()} on (${g.c.pick(["instance", "host, app"])}) ${one()}`]];
    },
    relabelled,
    quantile: (g) => {
      const sum = `sum(increase(${g.windowed(BUCKETS)})) by (${g.c.pick(METRICSQL.bucket_groups)})`;
      return [
        [1, () => `histogram_share(${g.c.pick(["0.1", "0.3", "7"])}, ${sum})`],
        [1, () => `histogram_${g.c.pick(["avg", "stddev", "stdvar"])}(${sum})`],
        [1, () => `histogram_quantiles("phi", 0.5, 0.9, ${sum})`],
        [1, () => `prometheus_buckets(${sum})`],
      ];
    },
    absent: (g) => [
      [1, () => `absent(${g.c.pick(['nothing{app=~"x"}', 'nothing{app="x"}', anyMetric(g.c).name])})`],
      [1, () => 'absent_over_time(nothing{app=~"x"}[5m])'],
    ],
    scalar: (g, depth) => [[0.5, () => `(${g.scalar(depth - 1)} default ${g.scalar(depth - 1)})`]],
  },
  mistakes: (g) => [`label_set(${g.vector(1)}, "a")`, `quantile_over_time(${g.vector(1)})`, "WITH (f(a) = a) f(1, 2)"],
};

function rollups(g: Grammar, depth: number): Form<string>[] {
  const { c } = g;
  return [
    [1, () => `quantiles_over_time("q", 0.1, 0.9, ${g.range(depth)})`],
    [1, () => `predict_linear(${g.range(depth)}, ${c.pick(["0", "60", "1h"])})`],
    [1, () => `${c.pick(LIMIT_ROLLUPS)}(${g.range(depth)}, ${c.pick(NUMBERS)})`],
    [0.5, () => `aggr_over_time(("min_over_time", "sum_over_time", "count_over_time"), ${g.range(depth)})`],
    [0.5, () => `duration_over_time(${g.range(depth)}, ${c.pick(["20s", "1m"])})`],
    [0.5, () => `hoeffding_bound_${c.pick(["lower", "upper"])}(0.9, ${g.range(depth)})`],
  ];
}

/** Functions of all steps. 1.79.5 leaves gaps open and drops names, so there are neither. */
function overRange(g: Grammar, depth: number): string {
  const arg = `(label_del(${g.vector(depth - 1)}, "__name__") default 0)`;
  const phi = g.c.pick(["0.5", "0.9"]);
  return g.c.chance(0.1) ? `range_quantile(${phi}, ${arg})` : `${g.c.pick(RANGES)}(${arg})`;
}

function relabelled(g: Grammar, depth: number): Form<string>[] {
  const { c } = g;
  const arg = g.vector(depth - 1);
  const [to, from] = [c.pick(["app", "new", "region"]), c.pick(["app", "instance", "status", "missing"])];
  const there = c.pick(COMMON);
  return [
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
  ];
}

function template(g: Grammar, depth: number): string {
  const body = g.vector(depth - 1);
  return g.c.pick([
    `WITH (x = ${body}) x + x`,
    `WITH (f(a, b) = sum(a) by (app) / sum(b) by (app)) f(${body}, ${selector(g.c)})`,
    `WITH (common = {region=~"fra|iad"}) ${anyMetric(g.c).name}{common, app!=""}`,
    "WITH (w = 5m, x = rate(svc_instance_cpu[5m])) x / 2",
  ]);
}
