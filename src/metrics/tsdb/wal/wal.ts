import {
  closeSync,
  fdatasync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32 } from "node:zlib";
import type { Labels } from "../../source.ts";
import { DamagedBytes } from "../bytes.ts";
import { makeDir, type Quarantine, StorageError, syncDir, writeAll } from "../files.ts";
import type { Batch } from "../head.ts";
import { decodeRecord, encodeRecord, type RecordSink, SegmentState } from "./record.ts";

const MAGIC = Buffer.from("HNGRWAL1");
/** Length, its complement and a checksum: distinguishes a damaged length from a torn write. */
const FRAME_BYTES = 12;
const syncFile = promisify(fdatasync);

/** A position in the WAL. */
export interface WalPosition {
  segment: number;
  offset: number;
}

interface Segment {
  number: number;
  bytes: number;
  /** Bytes of series definitions. */
  definitions: number;
  /** Head windows with samples in this segment that are in no block yet. */
  windows: Set<number>;
}

/**
 * The WAL of samples that are in no block yet: segments of frames (u32 length · u32 ~length · u32 crc32 · record). An
 * append is in the page cache when it returns, and durable after the next sync, at most a second later; `flush` waits
 * for that.
 */
export class Wal {
  readonly #dir: string;
  readonly #segmentBytes: number;
  readonly #state = new SegmentState();
  readonly #segments: Segment[] = [];
  #fd: number | undefined;
  /** Closed segments that are not fully synced. */
  #unsynced: number[] = [];
  #dirty = false;
  #syncing: Promise<void> | undefined;
  #broken: StorageError | undefined;
  #torn = false;

  constructor(dir: string, segment_bytes: number) {
    this.#dir = dir;
    this.#segmentBytes = segment_bytes;
    makeDir(dir);
    for (const name of readdirSync(dir).sort()) {
      const number = /^(\d{8})\.wal$/.exec(name)?.[1];
      if (number === undefined) continue;
      const { size } = statSync(join(dir, name));
      this.#segments.push({ number: Number(number), bytes: size, definitions: 0, windows: new Set() });
    }
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get oldestSegment(): number {
    return this.#segments[0]?.number ?? Infinity;
  }

  /** Position of the next record. */
  get position(): WalPosition {
    const last = this.#segments.at(-1);
    return { segment: last?.number ?? 0, offset: last?.bytes ?? 0 };
  }

  /** A sync failed: no more appends until it is reopened. */
  get broken(): boolean {
    return this.#broken !== undefined;
  }

  /** Throws StorageError when the disk refuses; then nothing of the batch is in the WAL. */
  append(batch: Batch, labels: (ref: number) => Labels): void {
    if (this.#broken) throw this.#broken;
    const fd = this.#ready();
    const { record, definitions } = encodeRecord(batch, labels, this.#state);
    const frame = Buffer.allocUnsafe(FRAME_BYTES + record.length);
    frame.writeUInt32LE(record.length, 0);
    frame.writeUInt32LE(~record.length >>> 0, 4);
    frame.writeUInt32LE(crc32(record), 8);
    frame.set(record, FRAME_BYTES);
    const segment = this.#segments.at(-1);
    try {
      writeAll(fd, frame);
    } catch (cause) {
      this.#undo(fd, segment?.bytes ?? 0);
      throw new StorageError("the metrics log cannot be written", cause);
    }
    if (segment) {
      segment.bytes += frame.length;
      segment.definitions += definitions;
    }
    this.#dirty = true;
  }

  /** Marks that the newest segment has samples of this window, so it stays until the window is a block. */
  holds(window: number): void {
    this.#segments.at(-1)?.windows.add(window);
  }

  /** Resolves when everything appended before is durable. */
  async flush(): Promise<void> {
    // A running sync may have begun before the last append, so another one is needed.
    await this.#syncing?.catch(() => undefined);
    if (!this.#syncing) this.#syncing = this.#sync().finally(() => (this.#syncing = undefined));
    await this.#syncing;
  }

  /** The next append begins a new segment. */
  cut(): void {
    if (this.#fd === undefined) return;
    this.#unsynced.push(this.#fd);
    this.#fd = undefined;
  }

  /** The window is a block now: segments without other windows are deleted, except the current one. */
  release(window: number): void {
    for (const segment of this.#segments) segment.windows.delete(window);
    const last = this.#segments.at(-1);
    const done = this.#segments.filter((segment) => segment !== last && segment.windows.size === 0);
    for (const segment of done) {
      this.#segments.splice(this.#segments.indexOf(segment), 1);
      unlinkSync(this.#path(segment.number));
    }
  }

  /**
   * Passes every readable record to `sink`. A segment is read up to a bad record; a torn record at the end is normal
   * after a crash, anything else is quarantined too.
   */
  replay(sink: RecordSink & { position: WalPosition }, quarantine: Quarantine, done: (segment: number) => void): void {
    for (const { number } of this.#segments) {
      const bad = this.#replaySegment(number, sink);
      if (bad !== undefined) quarantine.keep(this.#path(number), bad);
      done(number);
    }
  }

  /** After replay: the windows of each old segment. */
  holdsIn(segment: number, window: number): void {
    this.#segments.find(({ number }) => number === segment)?.windows.add(window);
  }

  async close(): Promise<void> {
    if (this.#dirty && !this.#broken) await this.flush();
    for (const fd of this.#unsynced) closeSync(fd);
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#unsynced = [];
    this.#fd = undefined;
  }

  #replaySegment(number: number, sink: RecordSink & { position: WalPosition }): string | undefined {
    const bytes = readFileSync(this.#path(number));
    if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
      return isTorn(bytes, 0) ? undefined : "the log's first bytes are wrong";
    }
    const state = new SegmentState();
    let at = MAGIC.length;
    for (let record = recordAt(bytes, at); record; record = recordAt(bytes, at)) {
      if (crc32(record) !== bytes.readUInt32LE(at + 8)) return `a record at byte ${at} does not match its checksum`;
      sink.position = { segment: number, offset: at };
      try {
        decodeRecord(record, state, sink);
      } catch (thrown) {
        if (thrown instanceof DamagedBytes) return `a record at byte ${at}: ${thrown.message}`;
        throw thrown;
      }
      at += FRAME_BYTES + record.length;
    }
    return isTorn(bytes, at) ? undefined : `the bytes from ${at} on are no record`;
  }

  #ready(): number {
    const last = this.#segments.at(-1);
    if (this.#torn) this.#mend();
    // Definitions do not count: half a million series would fill one segment after the other with names.
    if (this.#fd !== undefined && last && last.bytes - last.definitions < this.#segmentBytes) return this.#fd;
    this.cut();
    const number = (last?.number ?? 0) + 1;
    try {
      const fd = openSync(this.#path(number), "wx");
      writeAll(fd, MAGIC);
      syncDir(this.#dir);
      this.#fd = fd;
    } catch (cause) {
      // Removes a half-created segment, so that the next attempt can use its name.
      unlinkQuietly(this.#path(number));
      throw new StorageError("the metrics log cannot begin a new segment", cause);
    }
    this.#segments.push({ number, bytes: MAGIC.length, definitions: 0, windows: new Set() });
    this.#state.number = number;
    return this.#fd;
  }

  /** Truncates a partial record. The segment's state has advanced, so the next append begins a new one. */
  #undo(fd: number, size: number): void {
    try {
      ftruncateSync(fd, size);
      this.cut();
    } catch {
      this.#torn = true;
    }
  }

  /** A record that could be neither written nor truncated ends its segment: readers stop there. */
  #mend(): void {
    this.#torn = false;
    this.cut();
  }

  async #sync(): Promise<void> {
    if (this.#broken) throw this.#broken;
    const closed = this.#unsynced;
    // Read before the first await: a segment closed meanwhile keeps its file open for the next sync.
    const current = this.#fd;
    this.#unsynced = [];
    this.#dirty = false;
    try {
      for (const fd of closed) await syncFile(fd);
      if (current !== undefined) await syncFile(current);
    } catch (cause) {
      // The kernel reports a failed write-back once: a later successful sync proves nothing.
      this.#broken = new StorageError("the metrics log could not be synced", cause);
      throw this.#broken;
    } finally {
      for (const fd of closed) closeSync(fd);
    }
  }

  #path(number: number): string {
    return join(this.#dir, `${String(number).padStart(8, "0")}.wal`);
  }
}

/** The length of the frame's record; undefined when there is no frame. */
function lengthAt(bytes: Buffer, at: number): number | undefined {
  const length = bytes.readUInt32LE(at);
  return length > 0 && bytes.readUInt32LE(at + 4) === ~length >>> 0 ? length : undefined;
}

/** The record of a whole frame at this place. */
function recordAt(bytes: Buffer, at: number): Buffer | undefined {
  const length = at + FRAME_BYTES > bytes.length ? undefined : lengthAt(bytes, at);
  const end = at + FRAME_BYTES + (length ?? 0);
  return length === undefined || end > bytes.length ? undefined : bytes.subarray(at + FRAME_BYTES, end);
}

/** A torn frame, or zeros, as a crash leaves after the last record. */
function isTorn(bytes: Buffer, at: number): boolean {
  if (bytes.length - at < FRAME_BYTES) return true;
  const length = lengthAt(bytes, at);
  if (length === undefined) return bytes.subarray(at).every((byte) => byte === 0);
  return at + FRAME_BYTES + length > bytes.length;
}

function unlinkQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never created.
  }
}
