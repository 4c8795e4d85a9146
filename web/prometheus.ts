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

export async function queryRange(query: string, { start, end, step }: Range, signal?: AbortSignal): Promise<Series[]> {
  const answer = (await call("GET /prometheus/:org_slug/api/v1/query_range", {
    ...fetchOptions(signal),
    query: { query, start: String(start), end: String(end), step: String(step) },
  })) as unknown as Matrix;
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
