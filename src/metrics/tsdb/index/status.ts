import type { Matcher } from "../../source.ts";
import type { Partition } from "../partition.ts";
import { matchSeries } from "./match.ts";
import type { SeriesTable } from "./series-table.ts";

export interface Count {
  name: string;
  value: number;
}

export interface StatusRequest {
  /** Rows of each list; at most `status_rows`. */
  top?: number;
  /** Only series that match count. */
  selector?: readonly (readonly Matcher[])[];
  /** Values of this label are counted too. */
  focus_label?: string;
}

/**
 * What is stored and what it costs. The names are those of two worlds at once: Prometheus' (`headStats` and
 * four lists) and VictoriaMetrics' (totals and five), so that tools made for either find theirs.
 */
export interface TsdbStatus {
  headStats: { numSeries: number; numLabelPairs: number; chunkCount: number; minTime: number; maxTime: number };
  totalSeries: number;
  totalLabelValuePairs: number;
  seriesCountByMetricName: Count[];
  seriesCountByLabelName: Count[];
  seriesCountByFocusLabelValue: Count[];
  seriesCountByLabelValuePair: Count[];
  labelValueCountByLabelName: Count[];
  memoryInBytesByLabelName: Count[];
  /** Not in either: everything that is dropped or quarantined is counted here. */
  storage: {
    samples_appended: number;
    active_series: number;
    active_series_by_app: Count[];
    head_bytes: number;
    wal_bytes: number;
    block_bytes: number;
    blocks: number;
    dropped_samples: Record<string, number>;
    dropped_samples_by_app: Count[];
    quarantined: { file: string; reason: string }[];
    /** Why blocks cannot be written just now. */
    failure?: string;
  };
}

/** Of an org that has no metrics. */
export const EMPTY_STATUS: TsdbStatus = {
  headStats: { numSeries: 0, numLabelPairs: 0, chunkCount: 0, minTime: 0, maxTime: 0 },
  totalSeries: 0,
  totalLabelValuePairs: 0,
  seriesCountByMetricName: [],
  seriesCountByLabelName: [],
  seriesCountByFocusLabelValue: [],
  seriesCountByLabelValuePair: [],
  labelValueCountByLabelName: [],
  memoryInBytesByLabelName: [],
  storage: {
    samples_appended: 0,
    active_series: 0,
    active_series_by_app: [],
    head_bytes: 0,
    wal_bytes: 0,
    block_bytes: 0,
    blocks: 0,
    dropped_samples: {},
    dropped_samples_by_app: [],
    quarantined: [],
  },
};

export function statusOf(partition: Partition, request: StatusRequest): TsdbStatus {
  const { table, head, admission, limits } = partition;
  const top = Math.min(request.top ?? 10, limits.status_rows);
  const counts = countPairs(table, request.selector);
  const byName = new Map<string, { series: number; values: number; bytes: number }>();
  for (const { name, value, series } of counts) {
    const sum = byName.get(name) ?? { series: 0, values: 0, bytes: 0 };
    byName.set(name, { series: sum.series + series, values: sum.values + 1, bytes: sum.bytes + value.length });
  }
  const ofNames = (pick: (sum: { series: number; values: number; bytes: number }) => number): Count[] =>
    highest(
      [...byName].map(([name, sum]) => ({ name, value: pick(sum) })),
      top,
    );
  const ofValues = (label: string | undefined): Count[] =>
    highest(
      counts.filter(({ name }) => name === label).map(({ value, series }) => ({ name: value, value: series })),
      top,
    );
  const times = timesOf(partition);
  const series = request.selector ? matchSeries(table, request.selector).length : table.alive;
  return {
    headStats: {
      numSeries: head.activeSeries,
      numLabelPairs: counts.length,
      chunkCount: partition.blocks.length,
      ...times,
    },
    totalSeries: series,
    totalLabelValuePairs: counts.reduce((sum, count) => sum + count.series, 0),
    seriesCountByMetricName: ofValues("__name__"),
    seriesCountByLabelName: ofNames((sum) => sum.series),
    seriesCountByFocusLabelValue: ofValues(request.focus_label),
    seriesCountByLabelValuePair: highest(
      counts.map(({ name, value, series: count }) => ({ name: `${name}=${value}`, value: count })),
      top,
    ),
    labelValueCountByLabelName: ofNames((sum) => sum.values),
    memoryInBytesByLabelName: ofNames((sum) => sum.bytes),
    storage: {
      samples_appended: partition.appended,
      active_series: head.activeSeries,
      active_series_by_app: highest(toCounts(admission.activeByApp), top),
      head_bytes: head.bytes,
      wal_bytes: partition.bytes.wal,
      block_bytes: partition.bytes.blocks,
      blocks: partition.blocks.length,
      dropped_samples: Object.fromEntries(admission.drops.byReason),
      dropped_samples_by_app: highest(toCounts(admission.drops.byApp), top),
      quarantined: partition.quarantine.found,
      ...(partition.failure ? { failure: partition.failure.message } : {}),
    },
  };
}

/** Series per `name="value"`, of all or of those that match. */
function countPairs(
  table: SeriesTable,
  selector: readonly (readonly Matcher[])[] | undefined,
): { name: string; value: string; series: number }[] {
  const counts = new Map<number, number>();
  if (selector) {
    for (const ref of matchSeries(table, selector)) {
      for (const pair of table.pairs(ref)) counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
  } else {
    for (const { pairs } of table.names.values()) {
      for (const pair of pairs.values()) counts.set(pair, table.postings(pair).length);
    }
  }
  return [...counts].map(([pair, series]) => ({ ...table.pairText(pair), series }));
}

function timesOf({ head, blocks }: Partition): { minTime: number; maxTime: number } {
  const starts = [...head.windows, ...blocks].map(({ start_ms }) => start_ms);
  const ends = blocks.map(({ end_ms }) => end_ms);
  const none = starts.length === 0;
  return { minTime: none ? 0 : Math.min(...starts), maxTime: none ? 0 : Math.max(head.newest_ms, ...ends) };
}

function toCounts(counts: ReadonlyMap<string, number>): Count[] {
  return [...counts].map(([name, value]) => ({ name, value }));
}

function highest(counts: Count[], top: number): Count[] {
  return counts.sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1)).slice(0, top);
}
