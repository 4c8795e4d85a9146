import { crc32 } from "node:zlib";
import type { Labels } from "../../source.ts";
import { ByteReader, ByteWriter, DamagedBytes } from "../bytes.ts";
import type { WalPosition } from "../wal/wal.ts";
import type { Keeper } from "./frame-cache.ts";

/**
 * A block: samples of a span of time that never change again, one file.
 *
 *     magic (8)
 *     frames       zstd: varint n · n × varint chunk length (0: the series has none here) · chunks
 *     label lists  zstd, a few hundred series each: varint shared pairs · varint more pairs · texts
 *     directory    below
 *     tail         u32 directory length · u32 crc32 of it · magic (8)
 *
 * Series are in the order of their labels. Neighbours share frames: a *group* of series has one frame per
 * slice of time. Frames and label lists have their own checksums in the directory, so a flipped byte costs
 * its frame and nothing else.
 */
export const MAGIC = Buffer.from("HNGRBLK1");
export const TAIL_BYTES = 16;
/** Series per label list. */
export const LIST_SERIES = 512;

/** A run of bytes of the file and their checksum. */
export interface Extent {
  offset: number;
  length: number;
  crc: number;
}

export interface Frame extends Extent, Keeper {
  min_ms: number;
  max_ms: number;
}

export interface Group {
  /** The first series of the group, counted in the order of the block. */
  first: number;
  count: number;
  frames: Frame[];
}

/** Samples of [start, end) that stood before `position` in the log are in this block. */
export interface Flushed {
  start_ms: number;
  end_ms: number;
  position: WalPosition;
}

export interface Directory {
  start_ms: number;
  end_ms: number;
  series: number;
  samples: number;
  lists: Extent[];
  groups: Group[];
  flushed: Flushed[];
  /** Names of the blocks this one was made from: they are deleted, now or when next opened. */
  replaces: string[];
}

export function encodeDirectory(directory: Directory): Uint8Array {
  const out = new ByteWriter(4096);
  out.zigzag(directory.start_ms);
  out.zigzag(directory.end_ms);
  out.varint(directory.series);
  out.varint(directory.samples);
  // Frames come first in the file and then the lists, without gaps: lengths say the offsets.
  out.varint(directory.groups.length);
  for (const { count, frames } of directory.groups) {
    out.varint(count);
    out.varint(frames.length);
    for (const frame of frames) {
      out.varint(frame.length);
      out.varint(frame.crc);
      out.varint(frame.min_ms - directory.start_ms);
      out.varint(frame.max_ms - frame.min_ms);
    }
  }
  out.varint(directory.lists.length);
  for (const { length, crc } of directory.lists) {
    out.varint(length);
    out.varint(crc);
  }
  out.varint(directory.flushed.length);
  for (const { start_ms, end_ms, position } of directory.flushed) {
    out.zigzag(start_ms);
    out.zigzag(end_ms);
    out.varint(position.segment);
    out.varint(position.offset);
  }
  out.varint(directory.replaces.length);
  for (const name of directory.replaces) out.text(name);
  return out.view();
}

export function decodeDirectory(bytes: Uint8Array): Directory {
  const from = new ByteReader(bytes);
  const start_ms = from.zigzag();
  const end_ms = from.zigzag();
  const series = from.varint();
  const samples = from.varint();
  let offset = MAGIC.length;
  let first = 0;
  const extent = (): Extent => {
    const length = from.varint();
    const crc = from.varint();
    offset += length;
    return { offset: offset - length, length, crc };
  };
  const times = <T>(read: () => T): T[] => {
    const count = from.varint();
    if (count > bytes.length) throw new DamagedBytes("an impossible count");
    return Array.from({ length: count }, read);
  };
  const groups = times(() => {
    const count = from.varint();
    first += count;
    const frames = times(() => {
      const where = extent();
      const min_ms = start_ms + from.varint();
      return { ...where, min_ms, max_ms: min_ms + from.varint() };
    });
    return { first: first - count, count, frames };
  });
  const lists = times(extent);
  const flushed = times(() => ({
    start_ms: from.zigzag(),
    end_ms: from.zigzag(),
    position: { segment: from.varint(), offset: from.varint() },
  }));
  const replaces = times(() => from.text());
  return { start_ms, end_ms, series, samples, lists, groups, flushed, replaces };
}

export function encodeTail(directory: Uint8Array): Buffer {
  const tail = Buffer.alloc(TAIL_BYTES);
  tail.writeUInt32LE(directory.length, 0);
  tail.writeUInt32LE(crc32(directory), 4);
  tail.set(MAGIC, 8);
  return tail;
}

/** Label lists of neighbours begin alike: say how many pairs are the same and spell the rest. */
export function putLabels(out: ByteWriter, labels: Labels, before: Labels): void {
  let shared = 0;
  while (shared < labels.length && shared < before.length && labels[shared] === before[shared]) shared++;
  shared >>= 1;
  out.varint(shared);
  out.varint(labels.length / 2 - shared);
  for (const text of labels.slice(2 * shared)) out.text(text);
}

export function readLabels(from: ByteReader, before: Labels): Labels {
  const shared = from.varint();
  const more = from.varint();
  if (2 * shared > before.length || more > from.bytes.length) throw new DamagedBytes("an impossible label list");
  const labels = before.slice(0, 2 * shared);
  for (let i = 0; i < 2 * more; i++) labels.push(from.text());
  return labels;
}
