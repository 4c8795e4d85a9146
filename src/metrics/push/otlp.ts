/** OTLP metrics as samples, with the names that Prometheus gives them. */
import { formatShort } from "../promql/numbers.ts";
import { type ExponentialPoint, nativeOf } from "./otlp-exponential.ts";
import { type OwnLabels, PushedSamples } from "./samples.ts";

type Long = string | number | bigint;

interface Attribute {
  key?: string;
  value?: { stringValue?: string; boolValue?: boolean; intValue?: Long; doubleValue?: number };
}

interface Point extends ExponentialPoint {
  attributes?: Attribute[];
  timeUnixNano?: Long;
  flags?: number;
  asDouble?: number | string;
  asInt?: Long;
  bucketCounts?: Long[];
  explicitBounds?: number[];
  quantileValues?: { quantile?: number; value?: number }[];
}

interface Points {
  dataPoints?: Point[];
  aggregationTemporality?: number | string;
  isMonotonic?: boolean;
}

interface Metric {
  name?: string;
  unit?: string;
  gauge?: Points;
  sum?: Points;
  histogram?: Points;
  exponentialHistogram?: Points;
  summary?: Points;
}

export interface OtlpRequest {
  resourceMetrics?: { resource?: { attributes?: Attribute[] }; scopeMetrics?: { metrics?: Metric[] }[] }[];
}

export interface OtlpSamples {
  samples: PushedSamples;
  /** Names of metrics that cannot be stored: deltas, and exponential histograms of too coarse a scale. */
  left_out: string[];
}

/** Flag of a point that only says that there is no value. */
const NO_VALUE = 1;
const DELTA: readonly (number | string | undefined)[] = [1, "AGGREGATION_TEMPORALITY_DELTA"];

export function samplesOfOtlp({ resourceMetrics = [] }: OtlpRequest, own?: OwnLabels): OtlpSamples {
  const found: OtlpSamples = { samples: new PushedSamples(own), left_out: [] };
  for (const { resource, scopeMetrics = [] } of resourceMetrics) {
    const attributes = attributesOf(resource?.attributes);
    const own = targetLabels(attributes);
    let newest = 0;
    for (const metric of scopeMetrics.flatMap(({ metrics = [] }) => metrics))
      newest = Math.max(newest, addMetric(metric, own, found));
    if (newest > 0 && Object.keys(own).length > 0)
      found.samples.series({ ...labelled(attributes), ...own, __name__: "target_info" })(newest, 1);
  }
  return found;
}

function attributesOf(attributes: readonly Attribute[] = []): Record<string, string> {
  return Object.fromEntries(
    attributes.flatMap(({ key, value }) => {
      const { stringValue, boolValue, intValue, doubleValue } = value ?? {};
      const text = stringValue ?? boolValue ?? intValue ?? doubleValue;
      return key === undefined || text === undefined ? [] : [[key, String(text)]];
    }),
  );
}

/** `service.name` and its neighbours become job and instance. */
function targetLabels(attributes: Record<string, string>): Record<string, string> {
  const { "service.name": name, "service.namespace": namespace, "service.instance.id": instance } = attributes;
  const job = namespace && name ? `${namespace}/${name}` : name;
  return { ...(job ? { job } : {}), ...(instance ? { instance } : {}) };
}

function labelled(attributes: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => {
      const plain = name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
      return [/^\d/.test(plain) ? `key_${plain}` : plain, value];
    }),
  );
}

/** Returns the newest time of its points. */
function addMetric(metric: Metric, own: Record<string, string>, found: OtlpSamples): number {
  const { gauge, sum, histogram, exponentialHistogram, summary } = metric;
  const points = gauge ?? sum ?? histogram ?? exponentialHistogram ?? summary;
  const isDelta = [sum, histogram, exponentialHistogram].some((one) => DELTA.includes(one?.aggregationTemporality));
  if (!points || isDelta) {
    found.left_out.push(metric.name ?? "");
    return 0;
  }
  const name = nameOf(metric);
  let newest = 0;
  for (const point of points.dataPoints ?? []) {
    const time = timeOf(point);
    if (time === undefined) continue;
    newest = Math.max(newest, time);
    const labels = { ...labelled(attributesOf(point.attributes)), ...own };
    if (exponentialHistogram) {
      const native = nativeOf(point);
      if (native) found.samples.natives({ ...labels, __name__: name })(time, native);
      else found.left_out.push(metric.name ?? "");
      continue;
    }
    addPoint(metric, point, (suffix, value, more) =>
      found.samples.series({ ...labels, ...more, __name__: name + suffix })(time, value),
    );
  }
  return newest;
}

/** Milliseconds; undefined for a point without a value. */
function timeOf({ timeUnixNano = 0, flags = 0 }: Point): number | undefined {
  const time = Math.floor(Number(timeUnixNano) / 1e6);
  return time > 0 && (flags & NO_VALUE) === 0 ? time : undefined;
}

function addPoint({ histogram, summary }: Metric, point: Point, add: Add): void {
  if (histogram) addHistogram(point, add);
  else if (summary) addSummary(point, add);
  else add("", Number(point.asDouble ?? point.asInt ?? Number.NaN));
}

type Add = (suffix: string, value: number, more?: Record<string, string>) => void;

function addHistogram({ bucketCounts = [], explicitBounds = [], count = 0, sum }: Point, add: Add): void {
  let total = 0;
  for (const [at, bound] of explicitBounds.entries()) {
    total += Number(bucketCounts[at] ?? 0);
    add("_bucket", total, { le: formatShort(bound) });
  }
  add("_bucket", Number(count), { le: "+Inf" });
  add("_count", Number(count));
  if (sum !== undefined) add("_sum", sum);
}

function addSummary({ quantileValues = [], count = 0, sum = 0 }: Point, add: Add): void {
  for (const { quantile = 0, value = 0 } of quantileValues) add("", value, { quantile: formatShort(quantile) });
  add("_count", Number(count));
  add("_sum", sum);
}

const UNITS: Record<string, string> = {
  d: "days",
  h: "hours",
  min: "minutes",
  s: "seconds",
  ms: "milliseconds",
  us: "microseconds",
  ns: "nanoseconds",
  By: "bytes",
  KiBy: "kibibytes",
  MiBy: "mebibytes",
  GiBy: "gibibytes",
  KBy: "kilobytes",
  MBy: "megabytes",
  GBy: "gigabytes",
  m: "meters",
  V: "volts",
  A: "amperes",
  J: "joules",
  W: "watts",
  g: "grams",
  Cel: "celsius",
  Hz: "hertz",
  "%": "percent",
};
const PER: Record<string, string> = { s: "second", m: "minute", min: "minute", h: "hour", d: "day" };

/** Prometheus' name: the unit and `_total` are written out. */
function nameOf({ name = "", unit = "", gauge, sum }: Metric): string {
  const tokens = name.split(/[^a-zA-Z0-9:]+/).filter(Boolean);
  const [main = "", per] = unit.replaceAll(/\{[^}]*\}/g, "").split("/");
  const suffix = UNITS[main] ?? main.replaceAll(/[^a-zA-Z0-9]+/g, "_").replaceAll(/^_+|_+$/g, "");
  if (suffix !== "" && suffix !== "1" && !tokens.includes(suffix)) tokens.push(suffix);
  if (per && !tokens.includes("per")) tokens.push("per", PER[per] ?? per);
  const isCounter = sum?.isMonotonic === true;
  if (isCounter) tokens.splice(0, tokens.length, ...tokens.filter((token) => token !== "total"), "total");
  if (gauge && unit === "1" && !tokens.includes("ratio")) tokens.push("ratio");
  const whole = tokens.join("_");
  return /^\d/.test(whole) ? `_${whole}` : whole;
}
