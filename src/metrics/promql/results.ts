import type { FloatHistogram } from "../histogram/histogram.ts";
import type { Labels } from "../source.ts";

/** Query results, in columns. */

export interface ResultSeries {
  labels: Labels;
  /** Milliseconds. Series without gaps share one list. */
  timestamps: Float64Array;
  values: Float64Array;
  /** Native histograms, apart from the numbers and at other times. */
  histograms?: readonly HistogramPoint[];
}

export interface HistogramPoint {
  timestamp: number;
  histogram: FloatHistogram;
}

export type QueryData =
  | { type: "vector" | "matrix"; series: ResultSeries[] }
  | { type: "scalar"; timestamp: number; value: number }
  | { type: "string"; timestamp: number; value: string };

export interface QueryResult {
  data: QueryData;
  warnings: string[];
  infos: string[];
  /** Samples read. */
  samples: number;
  cost: QueryCost;
}

/** What a query took, beside its samples. */
export interface QueryCost {
  /** Series that its selectors matched. */
  series: number;
  /** Values of columns that were allocated, also those that were freed. */
  values: number;
  /** Parsing, and all of it. */
  prepare_ms: number;
  total_ms: number;
}
