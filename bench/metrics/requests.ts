/**
 * The data set as remote-write requests, the same bytes for every engine: one request is one scrape of half
 * the instances. Made once and kept under .bench/, because making it takes longer than loading it.
 */
import { closeSync, existsSync, mkdirSync, openSync, readSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import snappy from "snappy";
import { ByteWriter } from "../../src/metrics/tsdb/bytes.ts";
import { encodeLabels } from "../../src/metrics/tsdb/index/labels.ts";
import { instanceSeries, POINTS, START_MS, STEP_MS } from "./data.ts";

const CACHE = join(import.meta.dirname, "../../.bench/metrics");
/** Senders at once, each strictly in the order of time. */
const SHARDS = 2;

/** Paths of the shards for so many instances (50 series each) and points. */
export function requestFiles(instances: number, points = POINTS): string[] {
  mkdirSync(CACHE, { recursive: true });
  return Array.from({ length: SHARDS }, (_, shard) => {
    const path = join(CACHE, `v1-${instances}x${points}-${shard}.rw`);
    if (!existsSync(path)) writeShard(path, instances, points, shard);
    return path;
  });
}

/** Every series' place in one request body, so that only times and values are written for the next. */
function template(instances: number, points: number, shard: number) {
  const out = new ByteWriter(1 << 20);
  const part = new ByteWriter(1024);
  const perShard = Math.ceil(instances / SHARDS);
  const slots: { at: number; next: () => number }[] = [];
  const time = new ByteWriter(16);
  time.varint(START_MS + points * STEP_MS);
  // Value: tag and 8 bytes. Time: tag and a varint, as long for every time of the data set.
  const sampleBytes = 9 + 1 + time.at;
  for (let i = shard * perShard; i < Math.min(instances, (shard + 1) * perShard); i++) {
    for (const { labels, next } of instanceSeries(i)) {
      part.reset();
      part.raw(encodeLabels(labels.flat()));
      part.byte(0x12);
      part.varint(sampleBytes);
      out.byte(0x0a);
      out.varint(part.at + sampleBytes);
      out.raw(part.view());
      slots.push({ at: out.at, next });
      out.raw(new Uint8Array(sampleBytes));
    }
  }
  return { body: Buffer.from(out.view().slice()), slots };
}

function writeShard(path: string, instances: number, points: number, shard: number): void {
  const { body, slots } = template(instances, points, shard);
  const fd = openSync(`${path}.tmp`, "w");
  const time = new ByteWriter(16);
  for (let point = 0; point < points; point++) {
    time.reset();
    time.varint(START_MS + point * STEP_MS);
    for (const { at, next } of slots) {
      body[at] = 0x09;
      body.writeDoubleLE(next(), at + 1);
      body[at + 9] = 0x10;
      body.set(time.view(), at + 10);
    }
    const packed = snappy.compressSync(body);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(packed.length);
    writeSync(fd, length);
    writeSync(fd, packed);
  }
  closeSync(fd);
  renameSync(`${path}.tmp`, path);
}

/** The packed requests of a shard, one after the other. */
export function* requestsOf(path: string): Generator<Buffer> {
  const fd = openSync(path, "r");
  try {
    const length = Buffer.alloc(4);
    while (readSync(fd, length) === 4) {
      const packed = Buffer.allocUnsafe(length.readUInt32LE());
      readSync(fd, packed);
      yield packed;
    }
  } finally {
    closeSync(fd);
  }
}
