import { closeSync, fsync, openSync, renameSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { constants, crc32, zstdCompressSync } from "node:zlib";
import { HistogramTable } from "../../histogram/table.ts";
import type { Columns, Labels } from "../../source.ts";
import { ByteWriter } from "../bytes.ts";
import { CHUNK_SAMPLES, encodeChunk, newColumns } from "../chunk/chunk.ts";
import { StorageError, syncDir, writeAll } from "../files.ts";
import {
  type Extent,
  encodeDirectory,
  encodeTail,
  type Flushed,
  type Frame,
  type Group,
  LIST_SERIES,
  MAGIC,
  putLabels,
} from "./format.ts";

/** Series that share frames; fewer when their chunks are large. */
const GROUP_SERIES = 128;
/** A group is closed when its chunks reach this: reading one series unpacks its whole frame. */
const GROUP_BYTES = 128 * 1024;
/** Room for a usual packed frame in one piece. */
const PACKED_BYTES = 96 * 1024;
const WRITE_BYTES = 256 * 1024;
const syncFile = promisify(fsync);

/** What goes into a block. */
export interface BlockContent {
  start_ms: number;
  end_ms: number;
  /** In the order of their labels. */
  refs: ArrayLike<number>;
  labels(ref: number): Labels;
  /** Appends all samples of the series that belong into the block, in order. */
  read(ref: number, into: Columns): void;
  flushed: Flushed[];
  replaces: string[];
  /** 3 is quick; merged blocks live long and may take more. */
  zstd_level: number;
}

/**
 * Writes a block beside its place and renames it: it is there completely or not at all. A generator, because
 * it is long work in a thread that also answers queries: it yields after every group.
 */
export class BlockWriter {
  readonly #path: string;
  readonly #content: BlockContent;
  readonly #pending = new ByteWriter(WRITE_BYTES + GROUP_BYTES);
  /** One per slice of time of the group being gathered, used again for the next. */
  readonly #slices: Slice[] = [];
  readonly #frame = new ByteWriter(GROUP_BYTES);
  readonly #groups: Group[] = [];
  readonly #lists: Extent[] = [];
  #fd = -1;
  #offset = 0;
  #samples = 0;
  /** Series that turned out to have samples; the others are left out. */
  readonly #refs: number[] = [];

  constructor(path: string, content: BlockContent) {
    this.#path = path;
    this.#content = content;
  }

  get samples(): number {
    return this.#samples;
  }

  get #temporary(): string {
    return `${this.#path}.tmp`;
  }

  /** All but making it last: the bytes are in the temporary file at the end. */
  *write(): Generator<void> {
    this.#fd = openSync(this.#temporary, "w");
    this.#put(MAGIC);
    yield* this.#writeGroups();
    this.#writeLists();
    const { start_ms, end_ms, flushed, replaces } = this.#content;
    const directory = encodeDirectory({
      start_ms,
      end_ms,
      series: this.#refs.length,
      samples: this.#samples,
      lists: this.#lists,
      groups: this.#groups,
      flushed,
      replaces,
    });
    this.#put(directory);
    this.#put(encodeTail(directory));
    this.#drain();
  }

  /** Makes the block durable and renames it to its final name. */
  async finish(): Promise<void> {
    await syncFile(this.#fd);
    closeSync(this.#fd);
    this.#fd = -1;
    renameSync(this.#temporary, this.#path);
    syncDir(dirname(this.#path));
  }

  /** Removes what was written; the block does not exist. */
  abandon(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
    try {
      unlinkSync(this.#temporary);
    } catch {
      // It was not created yet, or the disk does not allow even that; opening the folder removes leftovers.
    }
  }

  *#writeGroups(): Generator<void> {
    const { refs, read } = this.#content;
    const histograms = new HistogramTable();
    const samples: Columns = { ...newColumns(CHUNK_SAMPLES), histograms };
    let count = 0;
    for (let i = 0; i < refs.length; i++) {
      const ref = refs[i] as number;
      samples.length = 0;
      histograms.clear();
      read(ref, samples);
      if (samples.length === 0) continue;
      this.#refs.push(ref);
      this.#samples += samples.length;
      this.#addToSlices(samples, count++);
      if (count === GROUP_SERIES || this.#sliceAt(0).out.at >= GROUP_BYTES) {
        this.#closeGroup(count);
        count = 0;
        yield;
      }
    }
    if (count > 0) this.#closeGroup(count);
  }

  #addToSlices(samples: Columns, index: number): void {
    for (let from = 0, k = 0; from < samples.length; from += CHUNK_SAMPLES, k++) {
      const slice = this.#sliceAt(k);
      const to = Math.min(from + CHUNK_SAMPLES, samples.length);
      const before = slice.out.at;
      encodeChunk(slice.out, samples, from, to, this.#content.start_ms);
      while (slice.lengths.length < index) slice.lengths.push(0);
      slice.lengths.push(slice.out.at - before);
      slice.min_ms = Math.min(slice.min_ms, samples.timestamps[from] as number);
      slice.max_ms = Math.max(slice.max_ms, samples.timestamps[to - 1] as number);
    }
  }

  #sliceAt(k: number): Slice {
    const known = this.#slices[k];
    if (known) return known;
    const slice = { out: new ByteWriter(GROUP_BYTES), lengths: [], min_ms: Infinity, max_ms: -Infinity };
    this.#slices[k] = slice;
    return slice;
  }

  #closeGroup(count: number): void {
    const frames: Frame[] = [];
    for (const slice of this.#slices) {
      if (slice.lengths.length === 0) continue;
      this.#frame.reset();
      this.#frame.varint(slice.lengths.length);
      for (const length of slice.lengths) this.#frame.varint(length);
      this.#frame.raw(slice.out.view());
      frames.push({ ...this.#putPacked(this.#frame.view()), min_ms: slice.min_ms, max_ms: slice.max_ms });
      slice.out.reset();
      Object.assign(slice, { lengths: [], min_ms: Infinity, max_ms: -Infinity });
    }
    this.#groups.push({ first: this.#refs.length - count, count, frames });
  }

  #writeLists(): void {
    const out = new ByteWriter(LIST_SERIES * 64);
    for (let from = 0; from < this.#refs.length; from += LIST_SERIES) {
      out.reset();
      let before: Labels = [];
      for (const ref of this.#refs.slice(from, from + LIST_SERIES)) {
        const labels = this.#content.labels(ref);
        putLabels(out, labels, before);
        before = labels;
      }
      this.#lists.push(this.#putPacked(out.view()));
    }
  }

  #putPacked(bytes: Uint8Array): Extent {
    const params = { [constants.ZSTD_c_compressionLevel]: this.#content.zstd_level };
    // Saying the size beforehand lets zstd take tables of that size instead of megabytes.
    const packed = zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length, chunkSize: PACKED_BYTES });
    this.#put(packed);
    return { offset: this.#offset - packed.length, length: packed.length, crc: crc32(packed) };
  }

  #put(bytes: Uint8Array): void {
    this.#pending.raw(bytes);
    this.#offset += bytes.length;
    if (this.#pending.at >= WRITE_BYTES) this.#drain();
  }

  #drain(): void {
    writeAll(this.#fd, this.#pending.view());
    this.#pending.reset();
  }
}

interface Slice {
  out: ByteWriter;
  lengths: number[];
  min_ms: number;
  max_ms: number;
}

/** `<start>-<end>-<sequence>.block`: a higher sequence was written later. */
export interface BlockName {
  start_ms: number;
  end_ms: number;
  sequence: number;
}

export function blockPath(dir: string, { start_ms, end_ms, sequence }: BlockName): string {
  return join(dir, `${start_ms}-${end_ms}-${sequence}.block`);
}

export function parseBlockName(file: string): BlockName | undefined {
  const parts = /^(-?\d+)-(-?\d+)-(\d+)\.block$/.exec(file);
  if (!parts) return undefined;
  return { start_ms: Number(parts[1]), end_ms: Number(parts[2]), sequence: Number(parts[3]) };
}

/** Wraps the disk's error, so that callers can distinguish full from broken. */
export function asStorageError(thrown: unknown): unknown {
  const system = thrown instanceof Error && "code" in thrown && "syscall" in thrown;
  return system ? new StorageError("a metrics block cannot be written", thrown) : thrown;
}
