/** PromQL as far as Prometheus 2.42 knows it. */
import { BUCKETS, COMMON, NUMBERS, OFFSETS, SUBQUERIES, selector, WINDOWS, words } from "./choices.ts";
import type { DialectOfQueries, Grammar } from "./grammar.ts";

const DATES = words("day_of_month day_of_week day_of_year days_in_month hour minute month year");

/** 2.42 moves the `@` of predict_linear's range with every step, so there is none. */
const unmoved = (g: Grammar, depth: number): string => (g.c.chance(0.7) ? g.windowed() : g.subquery(depth));

export const PROMQL: DialectOfQueries = {
  counter_rollups: words("rate increase irate resets changes"),
  gauge_rollups: words(`
    avg_over_time min_over_time max_over_time sum_over_time count_over_time stddev_over_time stdvar_over_time
    last_over_time present_over_time delta idelta deriv changes`),
  maths: words(`
    abs ceil floor exp ln log2 log10 sqrt sgn sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh deg rad`),
  folds: words("sum avg min max count group stddev stdvar"),
  best: words("topk bottomk"),
  arithmetic: words("+ - * / % ^ atan2"),
  logical: [],
  windows: WINDOWS.map((window) => `[${window}]`),
  offsets: OFFSETS,
  subqueries: SUBQUERIES,
  ats: ["start()", "end()"],
  counts: ["1", "3", "0", "-1", "50"],
  left_numbers: NUMBERS,
  phis: ["0", "0.1", "0.5", "0.95", "0.99", "1", "-1", "2"],
  bucket_groups: ["le", "le, app", "le, region", "app"],
  scalars: ["time()", "pi()"],
  suffix: "",
  forms: {
    vector: (g, depth) => [[0.5, () => `vector(${g.scalar(depth - 1)})`]],
    rollup: (g, depth) => [
      [1, () => `predict_linear(${unmoved(g, depth)}, ${g.c.pick(["0", "60", "3600"])})`],
      [0.5, () => `holt_winters(${g.range(depth)}, ${g.c.pick(["0.3", "0.5"])}, ${g.c.pick(["0.1", "0.7"])})`],
    ],
    call: (g, depth) => [
      [1, () => `${g.c.pick(DATES)}(${dated(g)})`],
      [1, () => `timestamp(${g.vector(depth - 1)})`],
    ],
    matched: (g, depth) => [
      [
        2,
        () =>
          `${selector(g.c)} ${g.operator()} on (${g.c.pick(["instance", "app", "instance, status"])}) ${selector(g.c)}`,
      ],
      [
        1,
        () =>
          `${g.inner(depth)} ${g.c.pick(["and", "or", "unless"])} ignoring (${g.c.some([...COMMON, "le"], 2).join(", ")}) ${g.inner(depth)}`,
      ],
    ],
    relabelled: (g, depth) => {
      const arg = g.vector(depth - 1);
      const [to, from] = [g.c.pick(["app", "new", "region"]), g.c.pick(["app", "instance", "status", "missing"])];
      return [
        [2, () => `label_replace(${arg}, "${to}", "${g.c.pick(["$1", "x-$1", "fixed", ""])}", "${from}", "(.*)")`],
        [1, () => `label_replace(${arg}, "${to}", "$2$1", "${from}", "(.).*?([0-9]+)")`],
        [1, () => `label_join(${arg}, "${to}", "${g.c.pick(["-", "", ","])}", "app", "${from}")`],
      ];
    },
    quantile: (g) => [
      [1, () => `histogram_quantile(${g.c.pick(PROMQL.phis)}, ${selector(g.c, BUCKETS)})`],
      [1, () => `histogram_quantile(${g.c.pick(PROMQL.phis)}, rate(${g.windowed(BUCKETS)}))`],
    ],
    absent: (g) => {
      const missing = g.c.pick(['nothing{app="x"}', 'nothing{app="x",app="y"}', 'nothing{app=~"x"}', selector(g.c)]);
      return [
        [1, () => `absent(${missing})`],
        [1, () => `absent_over_time(${missing}[5m])`],
      ];
    },
  },
  mistakes(g) {
    const arg = g.vector(1);
    return [
      `rate(${selector(g.c)})`,
      `sum(${selector(g.c)}[5m])`,
      `${arg} and 1`,
      `${g.c.pick(["", "x"])}{app=~".*"}`,
      `label_replace(${arg}, "a-b", "", "app", "")`,
      `${selector(g.c)}[0s]`,
      `${arg} == bool ${arg}`,
      `sum(${arg}) offset 5m`,
      `count_values("a b", ${arg})`,
      `${selector(g.c)} @ end() @ start()`,
    ];
  },
};

/** What a date is taken of. */
function dated(g: Grammar): string {
  const days = `vector(time() - ${g.c.below(1e5)} * 86400)`;
  return g.c.pick([selector(g.c), "", days, "timestamp(svc_instance_up)"]);
}
