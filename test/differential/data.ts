/**
 * The data of the differential test: four instances of the benchmark's data set, three hours of them, with what
 * real targets do to their series: restarts (a staleness marker, silence, counters from 0 again), missed scrapes,
 * late starts, early ends.
 *
 * Every instance is between 70 and 460 ms late, while queries ask about half seconds and subqueries about whole ones.
 * So nothing is ever at the very edge of a window, about which Prometheus changed its mind between 2 and 3.
 */
import snappy from "snappy";
import { ByteWriter } from "#metrics/tsdb/bytes.ts";
import { encodeLabels } from "#metrics/tsdb/index/labels.ts";
import { type Generated, instanceSeries, START_MS, STEP_MS } from "../../bench/metrics/data.ts";
import { random } from "../support.ts";

const INSTANCES = 4;
const POINTS = 720;
export const DATA_START_MS = START_MS;
export const DATA_END_MS = START_MS + POINTS * STEP_MS;
const REQUEST_MS = 20 * STEP_MS;

interface Sample {
  time: number;
  /** Absent for a staleness marker. */
  value?: number;
}

interface Recorded {
  labels: string[];
  samples: Sample[];
}

/**
 * Scrapes after a start that are never missed. Counters near 0 with a gap before them are where Prometheus changed
 * how far it extrapolates: 2.42 goes back to where the counter was 0, 3 at most half a gap.
 */
const SURE = 20;

/**
 * How many scrapes are missed, and how many surely come after one. Never so many are missed that the usual gap is in
 * doubt: VictoriaMetrics 1.79.5 estimates it from the first twenty samples, newer ones from the last twenty.
 */
const FEW = 0.01;
const MANY = 0.1;
const APART = 3;

/** When an instance was away: from one scrape up to another. */
type Outage = [from: number, to: number];

export function recordedSeries(): Recorded[] {
  return Array.from({ length: INSTANCES }, (_, instance) => {
    const roll = random(1000 + instance);
    const restart = 60 + Math.floor(roll() * 200);
    const long = 400 + Math.floor(roll() * 200);
    const outages: Outage[] = [
      [restart, restart + 3],
      [long, long + 10 + Math.floor(roll() * 60)],
    ];
    const late_ms = 70 + 10 * Math.floor(roll() * 40);
    const all = instanceSeries(instance);
    // Every series draws from the instance's one generator, so scrapes are made one after the other.
    const scrapes = Array.from({ length: POINTS }, () => all.map((series) => series.next()));
    return all.map((series, n) => {
      // The buckets of a histogram come and go together; broken ones are mended differently by every version.
      const luck = nameOf(series).includes("_response_time_") ? random(2000 + instance) : roll;
      const values = scrapes.map((scrape) => scrape[n] ?? 0);
      return record(series, values, outages, late_ms, luck);
    });
  }).flat();
}

const nameOf = ({ labels }: Generated): string => labels.find(([name]) => name === "__name__")?.[1] ?? "";

/** Counters of the app begin at 0, those of the machine have been running for a while. */
function startOf(series: Generated, value: number): number {
  return nameOf(series).startsWith("svc_app_") ? value : 0;
}

function record(series: Generated, values: number[], outages: Outage[], late_ms: number, roll: () => number): Recorded {
  const isCounter = !/_memory_|_load_|_up$/.test(nameOf(series));
  const first = roll() < 0.1 ? Math.floor(roll() * 300) : 0;
  const last = roll() < 0.1 ? POINTS - Math.floor(roll() * 300) : POINTS;
  const misses = roll() < 0.2 ? MANY : FEW;
  const samples: Sample[] = [];
  let base = startOf(series, values[first] ?? 0);
  let sure = first + SURE;
  values.slice(0, last).forEach((value, i) => {
    const time = START_MS + i * STEP_MS + late_ms;
    const outage = outages.find(([from, to]) => i >= from && i < to);
    if (i < first) return;
    if (outage) {
      sure = i + 1 + SURE;
      base = isCounter ? (values[i + 1] ?? 0) : base;
      // The end of a series is said once.
      if (outage[0] === i) samples.push({ time });
    } else if (i < sure || roll() >= misses) {
      // Six decimals survive every engine's way of storing numbers.
      samples.push({ time, value: Math.round((value - base) * 1e6) / 1e6 });
    } else sure = i + 1 + APART;
  });
  return { labels: series.labels.flat(), samples };
}

/** Remote-write bodies, the same for every engine, in the order of time: Prometheus takes nothing from long ago. */
export function writeRequests(series: readonly Recorded[]): Buffer[] {
  const bodies: Buffer[] = [];
  for (let from = DATA_START_MS; from < DATA_END_MS; from += REQUEST_MS) {
    const body = new ByteWriter(1 << 16);
    for (const { labels, samples } of series) {
      const part = seriesMessage({
        labels,
        samples: samples.filter(({ time }) => time >= from && time < from + REQUEST_MS),
      });
      body.byte(0x0a);
      body.varint(part.length);
      body.raw(part);
    }
    bodies.push(snappy.compressSync(Buffer.from(body.view())));
  }
  return bodies;
}

const STALE_BYTES = Buffer.from("020000000000f07f", "hex");

function seriesMessage({ labels, samples }: Recorded): Uint8Array {
  const out = new ByteWriter(1 << 14);
  const sample = new ByteWriter(32);
  const value = Buffer.alloc(8);
  out.raw(encodeLabels(labels));
  for (const { time, value: number } of samples) {
    // The marker's bytes are written as bytes: a NaN that passes through a number may lose its bits.
    if (number === undefined) STALE_BYTES.copy(value);
    else value.writeDoubleLE(number);
    sample.reset();
    sample.byte(0x09);
    sample.raw(value);
    sample.byte(0x10);
    sample.varint(time);
    out.byte(0x12);
    out.varint(sample.at);
    out.raw(sample.view());
  }
  return out.view();
}
