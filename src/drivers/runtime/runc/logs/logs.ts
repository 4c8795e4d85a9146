/** Reads a machine's log: its newest lines, or those after a place. A cursor is a file and a place in it. */
import { mkdirSync, watch } from "node:fs";
import { nanosOfMs } from "#machines/logs/search.ts";
import { LOG_BEGIN, type LogLine, type LogPage, type LogsFrom } from "#machines/runtime/driver.ts";
import type { MachinePaths } from "../layout.ts";
import { type LogFile, LogFiles, type OnDamage, readAt } from "./files.ts";
import { type Block, parseLog, type StampedLine } from "./parse.ts";

export async function readLog(
  paths: Pick<MachinePaths, "log" | "logs">,
  from: LogsFrom,
  onDamage: OnDamage,
): Promise<LogPage> {
  await using files = await LogFiles.open(paths, onDamage);
  const { lines, cursor } = "cursor" in from ? await readOn(files, from.cursor) : await readNewest(files, from);
  return { lines: lines.map(({ timestamp, stream, message }) => ({ timestamp, stream, message })), cursor };
}

/** The cursor before the first line. */
export const LOG_START = "0:0:0";

/**
 * A place in a file: what was read ends at `seen`, and is parsed again from `clean`, because a line of the other stream
 * may have begun before lines that were read.
 */
interface Place {
  clean: number;
  seen: number;
}

const cursorOf = ({ first }: LogFile, { clean, seen }: Place): string => `${first}:${clean}:${seen}`;

interface Newest {
  tail: number;
  since?: number;
  until?: number;
}

async function readNewest(files: LogFiles, { tail, since = 0, until = Infinity }: Newest): Promise<LogPage> {
  let lines: LogLine[] = [];
  let cursor = LOG_START;
  const oldest = nanosOfMs(since);
  for (const file of files.all.toReversed()) {
    const is_newest = file === files.all.at(-1);
    if (!is_newest && (lines.length >= tail || file.max < oldest)) break;
    const { lines: found, end } = await newestIn(files, file, { tail: tail - lines.length, until });
    if (is_newest) cursor = cursorOf(file, end);
    lines = [...found, ...lines];
  }
  const recent = lines.filter(({ timestamp }) => timestamp >= since);
  return { lines: tail > 0 ? recent.slice(-tail) : [], cursor };
}

/** The cursor at the end of a file: all complete lines were read. */
export async function endOf(files: LogFiles, file: LogFile): Promise<string> {
  return cursorOf(file, (await newestIn(files, file, { tail: 0, until: Infinity })).end);
}

type Wanted = Required<Omit<Newest, "since">>;
interface Part<Line extends LogLine = StampedLine> {
  lines: Line[];
  end: Place;
}

async function newestIn(files: LogFiles, file: LogFile, wanted: Wanted): Promise<Part<LogLine>> {
  if (file.raw) return await newestInRaw(file.raw, wanted);
  const blocks = await files.blocks(file);
  let lines: LogLine[] = [];
  for (const block of blocks.toReversed()) {
    if (lines.length >= wanted.tail) break;
    const found = parseLog(await files.read(file, block)).lines.filter(({ timestamp }) => timestamp < wanted.until);
    lines = [...found, ...lines];
  }
  return { lines: lines.slice(-Math.max(wanted.tail, 0)), end: endOfBlock(blocks.at(-1)) };
}

function endOfBlock(block: Block | undefined): Place {
  const end = block ? block.from + block.length : 0;
  return { clean: end, seen: end };
}

const PAGE_BYTES = 1024 * 1024;

/** Reads backwards from the end, doubling the size, until there are enough lines. */
async function newestInRaw(
  { handle, size }: NonNullable<LogFile["raw"]>,
  { tail, until }: Wanted,
): Promise<Part<LogLine>> {
  for (let length = PAGE_BYTES / 16; ; length *= 4) {
    const from = Math.max(0, size - length);
    const bytes = await readAt(handle, from, size - from);
    // The first line may be incomplete.
    const skip = from === 0 ? 0 : bytes.indexOf(10) + 1;
    const { lines: whole, used, seen, rest } = parseLog(bytes.subarray(skip));
    // An incomplete line is shown now, and again when it is complete.
    const lines = [...whole, ...rest].filter(({ timestamp }) => timestamp < until);
    const begin = from + skip;
    if (from === 0 || lines.length >= tail)
      return { lines: lines.slice(-Math.max(tail, 0)), end: { clean: begin + used, seen: begin + seen } };
  }
}

interface StampedPage {
  lines: StampedLine[];
  cursor: string;
  /** The cursor's file was deleted. */
  is_gone: boolean;
}

/** The page after a cursor. */
export async function readOn(files: LogFiles, cursor: string): Promise<StampedPage> {
  const { all } = files;
  const [first = "0", clean = "0", seen = clean] = (cursor === LOG_BEGIN ? LOG_START : cursor).split(":");
  const known = all.findIndex((file) => file.first === first);
  // A file that was deleted meanwhile is skipped.
  const begin = known >= 0 ? known : all.findIndex((file) => file.first > first.padStart(19, "0"));
  const is_gone = known < 0 && first !== "0";
  if (begin < 0) return { lines: [], cursor: cursor === LOG_BEGIN ? LOG_START : cursor, is_gone };
  let page: StampedPage = { lines: [], cursor, is_gone };
  let place: Place = known >= 0 ? { clean: Number(clean), seen: Number(seen) } : { clean: 0, seen: 0 };
  for (const file of all.slice(begin)) {
    const { lines, end } = await pageOf(files, file, place);
    page = { lines, cursor: cursorOf(file, end), is_gone };
    if (lines.length > 0) break;
    place = { clean: 0, seen: 0 };
  }
  return page;
}

/** The cursor before the first file that has lines of this time or later. */
export function cursorSince({ all }: LogFiles, since: number): string {
  const oldest = nanosOfMs(since);
  const file = all.find(({ max }) => max >= oldest) ?? all.at(-1);
  return file ? cursorOf(file, { clean: 0, seen: 0 }) : LOG_START;
}

async function pageOf(files: LogFiles, file: LogFile, place: Place): Promise<Part> {
  if (!file.raw) return await pageOfArchived(files, file, place);
  const { handle, size } = file.raw;
  // The file was truncated.
  const from = place.clean > size ? 0 : place.clean;
  const bytes = await readAt(handle, from, Math.min(size - from, PAGE_BYTES));
  const { lines, used, seen } = parseLog(bytes, place.seen - from);
  // A line that is still incomplete after so much is given up.
  const clean = from + (used === 0 && bytes.length === PAGE_BYTES ? seen || PAGE_BYTES : used);
  return { lines, end: { clean, seen: Math.max(from + seen, clean) } };
}

async function pageOfArchived(files: LogFiles, file: LogFile, place: Place): Promise<Part> {
  let end = place;
  for (const block of await files.blocks(file)) {
    if (block.from + block.length <= place.clean) continue;
    const bytes = await files.read(file, block);
    const skip = Math.max(0, place.clean - block.from);
    const { lines } = parseLog(bytes.subarray(skip), place.seen - block.from - skip);
    end = endOfBlock(block);
    if (lines.length > 0) return { lines, end };
  }
  return { lines: [], end };
}

/** Calls `wake` when the log grows. */
export function watchLog({ logs }: Pick<MachinePaths, "logs">, wake: () => void): () => void {
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const watcher = watch(logs, { persistent: false }, wake);
  // The directory may be removed; then there is nothing more to report.
  watcher.on("error", () => watcher.close());
  return () => watcher.close();
}
