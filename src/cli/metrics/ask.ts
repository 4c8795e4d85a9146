import type { Api } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { type Context, type Input, textOption, UsageError } from "../verb.ts";

export const ORG: readonly [string, string] = ["--org <slug>", "the organization (default: personal)"];

export interface Found {
  metric: Record<string, string>;
  value?: [number, string];
  values?: [number, string][];
}

interface PrometheusReply {
  data: { resultType: string; result: Found[] };
}

type MetricsRoute = Extract<keyof Api, `GET /prometheus/${string}`>;

/** Queries metrics. A restricted token needs another scheme than the full-access one; the platform knows its kind. */
export async function askMetrics<Data>(
  context: Context,
  input: Input,
  route: MetricsRoute,
  request: { params?: Record<string, string>; query: Record<string, unknown> },
): Promise<Data> {
  const params = { org_slug: textOption(input, "org") ?? "personal", ...request.params };
  const call = async (headers: Record<string, string>): Promise<Data> =>
    (await context.client.call(route, { ...request, params, headers } as never)) as Data;
  try {
    return await call({});
  } catch (thrown) {
    if (!(thrown instanceof ClientError) || thrown.http !== 401) throw thrown;
    return await call({ authorization: `SvcV1 ${context.token()}` });
  }
}

export async function instant(context: Context, input: Input, query: string, time?: string): Promise<Found[]> {
  const reply = await askMetrics<PrometheusReply>(context, input, "GET /prometheus/:org_slug/api/v1/query", {
    query: { query, time },
  });
  const { resultType, result } = reply.data;
  // A scalar is a series without a name.
  if (resultType === "scalar" || resultType === "string") {
    return [{ metric: {}, value: result as unknown as [number, string] }];
  }
  return result;
}

export async function range(
  context: Context,
  input: Input,
  query: string,
  { start, end, step }: { start: number; end: number; step: number },
): Promise<Found[]> {
  const reply = await askMetrics<PrometheusReply>(context, input, "GET /prometheus/:org_slug/api/v1/query_range", {
    query: { query, start: String(start), end: String(end), step: String(step) },
  });
  return reply.data.result;
}

/** `name{label="value"}`, as written in a query. */
export function seriesText({ __name__ = "", ...labels }: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? __name__ || "{}" : `${__name__}{${pairs.join(", ")}}`;
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** `90s`, `15m`, `6h`, `2d` as seconds. */
export function durationOption(input: Input, name: string, otherwise: string): number {
  const text = textOption(input, name) ?? otherwise;
  const [, count, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (UNITS[unit] ?? Number.NaN);
  if (!(seconds > 0)) throw new UsageError(`--${name} is a length of time such as 30m, 6h or 2d, not ${text}`);
  return seconds;
}
