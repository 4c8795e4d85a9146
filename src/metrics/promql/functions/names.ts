import type { Dialect } from "../ast.ts";

/** Names of functions, for the parser and for "did you mean". Implementations are in the tables of this folder. */

const namesIn = (text: string): string[] => text.trim().split(/\s+/);

/** Functions that look at raw samples in a window; the number is the place of the series argument (-1: the last). */
export const ROLLUPS: Readonly<Record<string, number>> = Object.fromEntries<number>([
  ...namesIn(`
    absent_over_time ascent_over_time avg_over_time changes changes_prometheus count_eq_over_time count_gt_over_time
    count_le_over_time count_ne_over_time count_over_time decreases_over_time default_rollup delta delta_prometheus
    deriv deriv_fast descent_over_time distinct_over_time duration_over_time first_over_time geomean_over_time
    histogram_over_time holt_winters double_exponential_smoothing idelta ideriv increase increase_prometheus
    increase_pure increases_over_time integrate irate lag last_over_time lifetime mad_over_time max_over_time
    median_over_time min_over_time mode_over_time outlier_iqr_over_time predict_linear present_over_time
    range_over_time rate rate_over_sum rate_prometheus resets rollup rollup_candlestick rollup_delta rollup_deriv
    rollup_increase rollup_rate rollup_scrape_interval scrape_interval share_eq_over_time share_gt_over_time
    share_le_over_time stale_samples_over_time stddev_over_time stdvar_over_time sum2_over_time sum_eq_over_time
    sum_gt_over_time sum_le_over_time sum_over_time tfirst_over_time timestamp timestamp_with_name
    tlast_change_over_time tlast_over_time tmax_over_time tmin_over_time zscore_over_time`).map(
    (n): [string, number] => [n, 0],
  ),
  ["aggr_over_time", 1],
  ["count_values_over_time", 1],
  ["hoeffding_bound_lower", 1],
  ["hoeffding_bound_upper", 1],
  ["quantile_over_time", 1],
  ["quantiles_over_time", -1],
]);

export const AGGREGATES: ReadonlySet<string> = new Set(
  namesIn(`
    any avg bottomk bottomk_avg bottomk_last bottomk_max bottomk_median bottomk_min count count_values distinct geomean
    group histogram limitk mad max median min mode outliers_iqr outliers_mad outliersk quantile quantiles share stddev
    stdvar sum sum2 topk topk_avg topk_last topk_max topk_median topk_min zscore`),
);

const PROM_AGGREGATES: ReadonlySet<string> = new Set(
  namesIn("avg bottomk count count_values group limitk limit_ratio max min quantile stddev stdvar sum topk"),
);

export const TRANSFORMS: ReadonlySet<string> = new Set(
  namesIn(`
    abs absent acos acosh asin asinh atan atanh bitmap_and bitmap_or bitmap_xor buckets_limit ceil clamp clamp_max
    clamp_min cos cosh day_of_month day_of_week day_of_year days_in_month deg drop_common_labels drop_empty_series end
    exp floor histogram_avg histogram_fraction histogram_quantile histogram_quantiles histogram_share histogram_stddev
    histogram_stdvar hour interpolate keep_last_value keep_next_value label_copy label_del label_graphite_group
    label_join label_keep label_lowercase label_map label_match label_mismatch label_move label_replace label_set
    label_transform label_uppercase label_value labels_equal limit_offset ln log10 log2 minute month now pi
    prometheus_buckets rad rand rand_exponential rand_normal range_avg range_first range_last range_linear_regression
    range_mad range_max range_min range_normalize range_quantile range_stddev range_stdvar range_sum
    range_trim_outliers range_trim_spikes range_trim_zscore range_zscore remove_resets round running_avg running_max
    running_min running_sum scalar sgn sin sinh smooth_exponential sort sort_by_label sort_by_label_desc
    sort_by_label_numeric sort_by_label_numeric_desc sort_desc sqrt start step tan tanh time timezone_offset union
    vector year`),
);

export function isAggregate(name: string, dialect: Dialect): boolean {
  return (dialect === "promql" ? PROM_AGGREGATES : AGGREGATES).has(name.toLowerCase());
}

export function isRollup(name: string): boolean {
  return Object.hasOwn(ROLLUPS, name.toLowerCase());
}

export function isTransform(name: string): boolean {
  return name === "" || TRANSFORMS.has(name.toLowerCase());
}

/** The known name that is nearest to a misspelt one, when it is near at all. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase().slice(0, 64);
  let best: string | undefined;
  let least = Math.min(3, Math.ceil(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const apart = distance(wanted, candidate, least);
    if (apart < least) {
      least = apart;
      best = candidate;
    }
  }
  return best;
}

/** Edits between two words, or `limit` when they are at least that far apart. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return Math.min(row[b.length] ?? limit, limit);
}
