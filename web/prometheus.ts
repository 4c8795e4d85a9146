/** The organization's metrics, asked as Grafana would ask. */
import { call, metricsHeaders, org } from "./session.ts";

export interface Series {
  labels: Record<string, string>;
  /** Pairs of seconds and value. */
  points: [number, number][];
}

interface Matrix {
  data: {
    resultType: string;
    result: { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] }[];
  };
  warnings?: string[];
}

/** What Prometheus and VictoriaMetrics say about the cost of a query; the limits are the platform's own. */
interface Told {
  data: { stats?: { samples?: { totalQueryableSamples?: number } } };
  stats?: {
    seriesFetched?: string;
    executionTimeMsec?: number;
    limits?: { series: number; samples: number; time_ms: number };
  };
}

/** Of a query; undefined what the metrics engine does not say. */
export interface Cost {
  series: number | undefined;
  samples: number | undefined;
  time_ms: number | undefined;
  /** Size of the answer. */
  bytes: number;
  limits: NonNullable<Told["stats"]>["limits"];
}

const fetchOptions = (signal?: AbortSignal) => ({
  params: { org_slug: org() },
  headers: metricsHeaders(),
  ...(signal ? { signal } : {}),
});

export interface Range {
  start: number;
  end: number;
  step: number;
}

/** The last `seconds`, with a step that fits the width. */
export function lastSeconds(seconds: number, steps = 240): Range {
  const step = Math.max(1, Math.round(seconds / steps));
  const end = Math.floor(Date.now() / 1000 / step) * step;
  return { start: end - seconds, end, step };
}

export async function queryRange(query: string, range: Range, signal?: AbortSignal): Promise<Series[]> {
  return seriesIn(await askRange({ query }, range, signal));
}

/** The same, with what it cost. */
export async function queryWithCost(
  query: string,
  range: Range,
  signal?: AbortSignal,
): Promise<{ series: Series[]; cost: Cost }> {
  const answer = await askRange({ query, stats: "all" }, range, signal);
  return { series: seriesIn(answer), cost: costIn(answer) };
}

async function askRange(
  query: { query: string; stats?: string },
  { start, end, step }: Range,
  signal: AbortSignal | undefined,
): Promise<Matrix & Told> {
  return (await call("GET /prometheus/:org_slug/api/v1/query_range", {
    ...fetchOptions(signal),
    query: { ...query, start: String(start), end: String(end), step: String(step) },
  })) as unknown as Matrix & Told;
}

function costIn(answer: Told): Cost {
  const { seriesFetched, executionTimeMsec, limits } = answer.stats ?? {};
  return {
    series: seriesFetched === undefined ? undefined : Number(seriesFetched),
    samples: answer.data.stats?.samples?.totalQueryableSamples,
    time_ms: executionTimeMsec,
    // As it was sent: JSON without spaces.
    bytes: new Blob([JSON.stringify(answer)]).size,
    limits,
  };
}

function seriesIn(answer: Matrix): Series[] {
  return answer.data.result.map(({ metric, values = [] }) => ({
    labels: metric,
    points: values.map(([at, value]): [number, number] => [at, Number(value)]),
  }));
}

/** An instant query. */
export async function queryNow(query: string, signal?: AbortSignal): Promise<Series[]> {
  const answer = (await call("GET /prometheus/:org_slug/api/v1/query", {
    ...fetchOptions(signal),
    query: { query },
  })) as unknown as Matrix;
  const { resultType, result } = answer.data;
  if (resultType === "scalar" || resultType === "string") {
    const [at, value] = result as unknown as [number, string];
    return [{ labels: {}, points: [[at, Number(value)]] }];
  }
  return result.map(({ metric, value = [0, "NaN"] }) => ({ labels: metric, points: [[value[0], Number(value[1])]] }));
}

/** Of one metric only, when it is named. */
const of = (metric: string | undefined): object => (metric ? { "match[]": [metric] } : {});

export async function labelValues(label_name: string, signal?: AbortSignal, metric?: string): Promise<string[]> {
  const { params, ...rest } = fetchOptions(signal);
  const answer = (await call("GET /prometheus/:org_slug/api/v1/label/:label_name/values", {
    ...rest,
    params: { ...params, label_name },
    query: of(metric),
  })) as unknown as { data: string[] };
  return answer.data;
}

export async function labelNames(signal?: AbortSignal, metric?: string): Promise<string[]> {
  const answer = (await call("GET /prometheus/:org_slug/api/v1/labels", {
    ...fetchOptions(signal),
    query: of(metric),
  })) as unknown as { data: string[] };
  return answer.data;
}

/** The labels of every series of a metric. */
export async function seriesOf(metric: string): Promise<Record<string, string>[]> {
  const answer = (await call("GET /prometheus/:org_slug/api/v1/series", {
    ...fetchOptions(),
    query: { "match[]": [metric] },
  })) as unknown as { data: Record<string, string>[] };
  return answer.data;
}

interface Count {
  name: string;
  value: number;
}

export interface Cardinality {
  headStats?: { numSeries?: number };
  totalSeries?: number;
  seriesCountByMetricName: Count[];
  labelValueCountByLabelName: Count[];
  seriesCountByLabelValuePair?: Count[];
}

export async function cardinality(signal?: AbortSignal): Promise<Cardinality> {
  const answer = (await call("GET /prometheus/:org_slug/api/v1/status/tsdb", {
    ...fetchOptions(signal),
    query: { topN: 15 },
  })) as unknown as {
    data: Cardinality;
  };
  return answer.data;
}

/** A series in query syntax. */
export function seriesName({ __name__ = "", ...labels }: Record<string, string>): string {
  const inner = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return `${__name__}${inner.length > 0 ? `{${inner.join(", ")}}` : ""}` || "value";
}
