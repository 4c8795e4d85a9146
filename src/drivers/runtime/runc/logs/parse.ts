/**
 * Log lines as monitors write them: `2026-01-01T00:00:00.123456789+00:00 stdout F text`; P is part of a longer one, and L a
 * monitor's own words about bytes that were lost, which no machine can write.
 */
import type { LogLine } from "#machines/runtime/driver.ts";
import { RUNC_LIMITS } from "../limits.ts";

const LINE = /^(\S+) (stdout|stderr) ([FPL]) ?(.*)$/s;
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00$/;
/** Length of the time at the beginning of a line. */
export const STAMP_CHARS = 35;
/** Where the letter is that tells stdout from stderr, the one that tells a part from a whole line, and its text. */
export const STREAM_AT = STAMP_CHARS + 4;
export const KIND_AT = STAMP_CHARS + 8;
export const MESSAGE_AT = KIND_AT + 2;

interface Pieces {
  stdout: string;
  stderr: string;
}

export interface StampedLine extends LogLine {
  /** As written: these sort like the times. */
  stamp: string;
  /** Bytes that are missing before this line. */
  lost?: number;
}

/** Joins the parts of long lines. */
export class LineReader {
  readonly #pieces: Pieces = { stdout: "", stderr: "" };
  #timestamp = 0;

  /** A line from one of the file, when it is complete. */
  take(text: string): StampedLine | undefined {
    const [, stamp = "", stream, kind, piece = ""] = LINE.exec(text) ?? [];
    if (stream !== "stdout" && stream !== "stderr") return undefined;
    if (kind === "L") return { timestamp: Date.parse(stamp), stream, message: piece, stamp, lost: lostIn(piece) };
    const pieces = this.#pieces;
    // Terminals end lines with CR LF.
    const message = pieces[stream] + (kind === "F" && piece.endsWith("\r") ? piece.slice(0, -1) : piece);
    const complete = kind === "F" || message.length >= RUNC_LIMITS.log_line_chars;
    pieces[stream] = complete ? "" : message;
    this.#timestamp = Date.parse(stamp);
    return complete ? { timestamp: this.#timestamp, stream, message, stamp } : undefined;
  }

  /** Whether a line of either stream has begun. */
  get is_within(): boolean {
    return this.#pieces.stdout !== "" || this.#pieces.stderr !== "";
  }

  rest(): LogLine[] {
    return (["stdout", "stderr"] as const).flatMap((stream) =>
      this.#pieces[stream] ? [{ timestamp: this.#timestamp, stream, message: this.#pieces[stream] }] : [],
    );
  }
}

const lostIn = (words: string): number => Number(/\d+/.exec(words)?.[0] ?? 0);

interface Parsed {
  lines: StampedLine[];
  /** Bytes up to the last place where no line was incomplete. */
  used: number;
  /** Bytes up to the last line end. */
  seen: number;
  /** Incomplete lines: a prompt, or the last output of a program. */
  rest: LogLine[];
}

/** Parses lines from a part of a file that begins at a line start; only those that end after `after`. */
export function parseLog(bytes: Buffer, after = 0): Parsed {
  const reader = new LineReader();
  const lines: StampedLine[] = [];
  let [used, seen] = [0, 0];
  for (let at = 0, end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
    const line = reader.take(bytes.toString("utf8", at, end));
    at = seen = end + 1;
    if (line && at > after) lines.push(line);
    if (!reader.is_within) used = at;
  }
  return { lines, used, seen, rest: reader.rest() };
}

/** The time of the line that begins here; undefined when none does. */
export function stampAt(bytes: Buffer, at: number): string | undefined {
  const stamp = bytes.toString("latin1", at, at + STAMP_CHARS);
  return STAMP.test(stamp) ? stamp : undefined;
}

/** Nanoseconds since 1970, in 19 digits: these sort like the times. */
export const nanosOf = (stamp: string): string =>
  String(Date.parse(`${stamp.slice(0, 23)}Z`) || 0).padStart(13, "0") + stamp.slice(23, 29);

/** The stamp of a time in milliseconds. */
export const stampOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000000+00:00`;

/** A part of a log that can be read by itself: no line goes on beyond its end, unless it is longer than `LONGEST`. */
export interface Block {
  from: number;
  length: number;
  /** Nanoseconds of its oldest and newest line. */
  min: string;
  max: string;
}

/** Blocks are the unit of compression and of searches: small enough to skip most of a log, large enough to compress. */
const BLOCK_BYTES = 256 * 1024;
const LONGEST = 4 * BLOCK_BYTES;
const PART = "P".charCodeAt(0);
const STDOUT = "o".charCodeAt(0);

/** The blocks of a log. Those of a beginning of it are the same, except for the last one. */
export function blocksOf(bytes: Buffer): Block[] {
  const cutter = new BlockCutter();
  for (let at = 0, end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
    cutter.line(bytes, at, end);
    at = end + 1;
  }
  cutter.cut();
  return cutter.blocks;
}

class BlockCutter {
  readonly blocks: Block[] = [];
  /** Characters of a line that has begun. */
  readonly #within = { stdout: 0, stderr: 0 };
  #from = 0;
  #end = 0;
  #min = "";
  #max = "";

  line(bytes: Buffer, at: number, end: number): void {
    const stamp = stampAt(bytes, at);
    if (stamp !== undefined) {
      if (this.#min === "" || stamp < this.#min) this.#min = stamp;
      if (stamp > this.#max) this.#max = stamp;
      const stream = bytes[at + STREAM_AT] === STDOUT ? "stdout" : "stderr";
      const goes_on = bytes[at + KIND_AT] === PART;
      this.#within[stream] = goes_on ? partOf(this.#within[stream], bytes.subarray(at + KIND_AT + 2, end)) : 0;
    }
    this.#end = end + 1;
    const length = this.#end - this.#from;
    const { stdout, stderr } = this.#within;
    if ((length >= BLOCK_BYTES && stdout + stderr === 0) || length >= LONGEST) this.cut();
  }

  cut(): void {
    const length = this.#end - this.#from;
    if (length > 0 && this.#min !== "")
      this.blocks.push({ from: this.#from, length, min: nanosOf(this.#min), max: nanosOf(this.#max) });
    [this.#from, this.#min, this.#max] = [this.#end, "", ""];
  }
}

/** Characters of a line that goes on: none when it is so long that it is complete, as in `LineReader`. */
function partOf(before: number, piece: Buffer): number {
  const chars = before + piece.toString().length;
  return chars >= RUNC_LIMITS.log_line_chars ? 0 : chars;
}
