import { allBuckets, type Bucket } from "../histogram/buckets.ts";
import type { Labels } from "../source.ts";
import { QUERY_LIMITS } from "./limits.ts";
import { pointsAsJson } from "./points.ts";
import type { HistogramPoint, QueryResult, ResultSeries } from "./results.ts";

/**
 * Results in the format of the Prometheus HTTP API, as bytes. A large answer is mostly numbers, so timestamps are
 * made into text once per answer and not once per series.
 */
export function writeResult(result: QueryResult, with_stats = false): Buffer {
  const annotations = [
    ...(result.warnings.length > 0 ? [`,"warnings":${JSON.stringify(result.warnings)}`] : []),
    ...(result.infos.length > 0 ? [`,"infos":${JSON.stringify(result.infos)}`] : []),
  ].join("");
  const out = new Output();
  out.write(`{"status":"success","data":{"resultType":"${result.data.type}","result":`);
  writeData(out, result);
  const { data, own } = with_stats ? statsOf(result) : { data: "", own: "" };
  out.write(`${data}}${annotations}${own}}`);
  return out.bytes();
}

/**
 * What the query cost: in `data`, where Prometheus has it, and beside it, where VictoriaMetrics has the series and the time.
 * The limits are ours.
 */
function statsOf({ samples, cost }: QueryResult): { data: string; own: string } {
  const { series, values, prepare_ms, total_ms } = cost;
  const timings = {
    evalTotalTime: total_ms / 1000,
    resultSortTime: 0,
    queryPreparationTime: prepare_ms / 1000,
    innerEvalTime: (total_ms - prepare_ms) / 1000,
    execQueueTime: 0,
    execTotalTime: total_ms / 1000,
  };
  const stats = { timings, samples: { totalQueryableSamples: samples, peakSamples: values } };
  const { series: most_series, samples: most_samples, time_ms } = QUERY_LIMITS;
  const limits = { series: most_series, samples: most_samples, time_ms };
  const own = { seriesFetched: String(series), executionTimeMsec: Math.round(total_ms), limits };
  return { data: `,"stats":${JSON.stringify(stats)}`, own: `,"stats":${JSON.stringify(own)}` };
}

function writeData(out: Output, { data }: QueryResult): void {
  if (data.type === "scalar") out.write(`[${seconds(data.timestamp)},"${number(data.value)}"]`);
  else if (data.type === "string") out.write(`[${seconds(data.timestamp)},${JSON.stringify(data.value)}]`);
  else {
    const times = new TimeTexts();
    out.write("[");
    for (const [i, series] of data.series.entries()) {
      if (i > 0) out.write(",");
      out.expect(i, data.series.length);
      out.write(`{"metric":${metric(series.labels)},`);
      if (data.type === "matrix") writeValues(out, series, times);
      else out.write(`${onePoint(series, times)}}`);
    }
    out.write("]");
  }
}

function onePoint({ timestamps, values, histograms }: ResultSeries, times: TimeTexts): string {
  const [native] = histograms ?? [];
  if (native) return `"histogram":${histogramPoint(native)}`;
  return `"value":${times.of(timestamps)[0] ?? "[0,"}"${number(values[0] ?? Number.NaN)}"]`;
}

function writeValues(out: Output, { timestamps, values, histograms }: ResultSeries, times: TimeTexts): void {
  if (!histograms || values.length > 0) {
    out.write('"values":[');
    out.append(pointsAsJson(values, times.of(timestamps)));
    out.write(histograms ? "]," : "]");
  }
  if (histograms) {
    out.write('"histograms":[');
    for (const [i, point] of histograms.entries()) out.write(`${i > 0 ? "," : ""}${histogramPoint(point)}`);
    out.write("]");
  }
  out.write("}");
}

/** Which ends of a bucket belong to it, as Prometheus numbers that. */
function boundaries({ lower_included, upper_included }: Bucket): number {
  if (lower_included) return upper_included ? 3 : 1;
  return upper_included ? 0 : 2;
}

function histogramPoint({ timestamp, histogram }: HistogramPoint): string {
  const buckets = allBuckets(histogram)
    .filter(({ count }) => count !== 0)
    .map((one) => `[${boundaries(one)},"${number(one.lower)}","${number(one.upper)}","${number(one.count)}"]`);
  const listed = buckets.length > 0 ? `,"buckets":[${buckets.join(",")}]` : "";
  return `[${seconds(timestamp)},{"count":"${number(histogram.count)}","sum":"${number(histogram.sum)}"${listed}}]`;
}

/** The part of a point before its value, `[12.5,`, for every timestamp of the answer. */
class TimeTexts {
  readonly #lists = new Map<Float64Array, string[]>();
  readonly #texts = new Map<number, string>();

  of(timestamps: Float64Array): string[] {
    let texts = this.#lists.get(timestamps);
    if (!texts) {
      texts = Array.from(timestamps, (time) => this.#one(time));
      this.#lists.set(timestamps, texts);
    }
    return texts;
  }

  #one(time: number): string {
    let text = this.#texts.get(time);
    if (text === undefined) {
      text = `[${seconds(time)},`;
      this.#texts.set(time, text);
    }
    return text;
  }
}

function metric(labels: Labels): string {
  const parts: string[] = [];
  for (let i = 0; i < labels.length; i += 2)
    parts.push(`${JSON.stringify(labels[i])}:${JSON.stringify(labels[i + 1])}`);
  return `{${parts.join(",")}}`;
}

/** Milliseconds as seconds, exactly. */
function seconds(ms: number): string {
  return String(ms / 1000);
}

/** The shortest digits that give the same number back; JSON has no infinities, so all numbers go as strings. */
function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}

/**
 * Text gathered in pieces and turned into bytes piece by piece. Pieces are small, because a string being built is a
 * tree of young objects: what is not yet bytes when the collector comes is moved, and moved again.
 */
class Output {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;
  #pending = "";
  #expected = 0;

  write(text: string): void {
    this.#pending += text;
    if (this.#pending.length > PIECE_CHARS) this.#flush();
  }

  append(bytes: Uint8Array): void {
    this.#flush();
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** So much of the whole is there: series are mostly as long as those before them. */
  expect(done: number, all: number): void {
    if (done > 0) this.#expected = (this.#length / done) * all;
  }

  bytes(): Buffer {
    this.#flush();
    return this.#bytes.subarray(0, this.#length);
  }

  #flush(): void {
    // No character takes more than three bytes per UTF-16 unit.
    this.#reserve(this.#pending.length * 3);
    this.#length += this.#bytes.write(this.#pending, this.#length);
    this.#pending = "";
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    // What is left over goes with the answer, so a little more than expected, and not twice what there is.
    const likely = this.#expected > needed ? this.#expected * 1.1 : this.#bytes.length * 2;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.ceil(likely)));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

const PIECE_CHARS = 4096;
const FIRST_BYTES = 64 * 1024;
