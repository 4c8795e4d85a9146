/**
 * Reads the logs that monitors write: `log`, and the rotated `log.1` before it. A cursor is the file's inode number and
 * an offset; the number stays with the file at a rotation, so a reader finds its position again.
 */
import { mkdirSync, statSync, watch } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { LOG_BEGIN, type LogLine, type LogPage, type LogsFrom } from "#machines/runtime/driver.ts";
import type { MachinePaths } from "../layout.ts";
import { RUNC_LIMITS } from "../limits.ts";

type LogFiles = Pick<MachinePaths, "log" | "logs">;

/** A log line: `2026-01-01T00:00:00.123456789+00:00 stdout F text`; P is part of a longer one. */
const LINE = /^(\S+) (stdout|stderr) ([FP]) ?(.*)$/s;

interface Parsed {
  lines: LogLine[];
  /** Bytes up to the last complete line. */
  used: number;
  /** Incomplete lines: a prompt, or the last output of a program. */
  rest: LogLine[];
}

interface Pieces {
  stdout: string;
  stderr: string;
  /** Timestamp of the newest one. */
  timestamp: number;
}

/** Parses lines from a part of a file that begins at a line start. */
export function parseLog(bytes: Buffer): Parsed {
  const pieces: Pieces = { stdout: "", stderr: "", timestamp: 0 };
  const lines: LogLine[] = [];
  let used = 0;
  for (let at = 0, end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
    const line = takeLine(bytes.toString("utf8", at, end), pieces);
    if (line) lines.push(line);
    at = end + 1;
    if (pieces.stdout + pieces.stderr === "") used = at;
  }
  const { timestamp } = pieces;
  const rest = (["stdout", "stderr"] as const).flatMap((stream) =>
    pieces[stream] ? [{ timestamp, stream, message: pieces[stream] }] : [],
  );
  return { lines, used, rest };
}

function takeLine(text: string, pieces: Pieces): LogLine | undefined {
  const [, time = "", stream, kind, piece = ""] = LINE.exec(text) ?? [];
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  // Terminals end lines with CR LF.
  const message = pieces[stream] + (kind === "F" && piece.endsWith("\r") ? piece.slice(0, -1) : piece);
  const complete = kind === "F" || message.length >= RUNC_LIMITS.log_line_chars;
  pieces[stream] = complete ? "" : message;
  pieces.timestamp = Date.parse(time);
  return complete ? { timestamp: pieces.timestamp, stream, message } : undefined;
}

export async function readLog(files: LogFiles, from: LogsFrom): Promise<LogPage> {
  return "cursor" in from ? await readOn(files, from.cursor) : await readNewest(files, from);
}

interface Newest {
  tail: number;
  since?: number;
  until?: number;
}

async function readNewest({ log }: LogFiles, { tail, since = 0, until = Infinity }: Newest): Promise<LogPage> {
  let lines: LogLine[] = [];
  let cursor = "0:0";
  for (const file of [log, `${log}.1`]) {
    await using handle = await openIfThere(file);
    if (!handle) continue;
    const { ino, size } = await handle.stat();
    const { lines: found, end } = await newestIn(handle, size, { tail: tail - lines.length, until });
    if (file === log) cursor = `${ino}:${end}`;
    lines = [...found, ...lines];
    if (lines.length >= tail) break;
  }
  const recent = lines.filter(({ timestamp }) => timestamp >= since);
  return { lines: tail > 0 ? recent.slice(-tail) : [], cursor };
}

/** Reads backwards from the end, doubling the size, until there are enough lines. */
async function newestIn(
  handle: FileHandle,
  size: number,
  { tail, until }: Required<Omit<Newest, "since">>,
): Promise<{ lines: LogLine[]; end: number }> {
  for (let length = PAGE_BYTES / 16; ; length *= 4) {
    const from = Math.max(0, size - length);
    const bytes = await readAt(handle, from, size - from);
    // The first line may be incomplete.
    const skip = from === 0 ? 0 : bytes.indexOf(10) + 1;
    const { lines: whole, used, rest } = parseLog(bytes.subarray(skip));
    // An incomplete line is shown now, and again when it is complete.
    const lines = [...whole, ...rest].filter(({ timestamp }) => timestamp < until);
    if (from === 0 || lines.length >= tail) return { lines: lines.slice(-Math.max(tail, 0)), end: from + skip + used };
  }
}

const PAGE_BYTES = 1024 * 1024;

async function readOn({ log }: LogFiles, cursor: string): Promise<LogPage> {
  const [ino, offset] = cursor.split(":").map(Number);
  const [current, before] = [inodeOf(log), inodeOf(`${log}.1`)];
  if (before !== undefined && (ino === before || cursor === LOG_BEGIN)) {
    const rest = await pageOf(`${log}.1`, offset ?? 0);
    if (rest.lines.length > 0) return rest;
  }
  // The file was rotated, perhaps twice; this is what followed.
  return await pageOf(log, ino === current ? (offset ?? 0) : 0);
}

async function pageOf(file: string, offset: number): Promise<LogPage> {
  await using handle = await openIfThere(file);
  if (!handle) return { lines: [], cursor: "0:0" };
  const { ino, size } = await handle.stat();
  // The file was truncated.
  const from = offset > size ? 0 : offset;
  const bytes = await readAt(handle, from, Math.min(size - from, PAGE_BYTES));
  const { lines, used } = parseLog(bytes);
  return { lines, cursor: `${ino}:${from + (used === 0 && bytes.length === PAGE_BYTES ? PAGE_BYTES : used)}` };
}

async function readAt(handle: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, at);
  return bytes.subarray(0, bytesRead);
}

async function openIfThere(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file, "r");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;

/** Calls `wake` when the log grows. */
export function watchLog({ logs }: LogFiles, wake: () => void): () => void {
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const watcher = watch(logs, { persistent: false }, wake);
  // The directory may be removed; then there is nothing more to report.
  watcher.on("error", () => watcher.close());
  return () => watcher.close();
}
