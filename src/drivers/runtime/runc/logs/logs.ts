/** Reads a machine's log: its newest lines, or those after a place. A cursor is a file's first time and an offset. */
import { mkdirSync, watch } from "node:fs";
import { LOG_BEGIN, type LogLine, type LogPage, type LogsFrom } from "#machines/runtime/driver.ts";
import type { MachinePaths } from "../layout.ts";
import { type LogFile, LogFiles, type OnDamage, readAt } from "./files.ts";
import { nanosOf, parseLog, stampOf } from "./parse.ts";

export async function readLog(
  paths: Pick<MachinePaths, "log" | "logs">,
  from: LogsFrom,
  onDamage: OnDamage,
): Promise<LogPage> {
  await using files = await LogFiles.open(paths, onDamage);
  return "cursor" in from ? await readOn(files, from.cursor) : await readNewest(files, from);
}

const BEGIN = "0:0";

interface Newest {
  tail: number;
  since?: number;
  until?: number;
}

async function readNewest(files: LogFiles, { tail, since = 0, until = Infinity }: Newest): Promise<LogPage> {
  let lines: LogLine[] = [];
  let cursor = BEGIN;
  const oldest = nanosOf(stampOf(since));
  for (const file of files.all.toReversed()) {
    const is_newest = file === files.all.at(-1);
    if (!is_newest && (lines.length >= tail || file.max < oldest)) break;
    const { lines: found, end } = await newestIn(files, file, { tail: tail - lines.length, until });
    if (is_newest) cursor = `${file.first}:${end}`;
    lines = [...found, ...lines];
  }
  const recent = lines.filter(({ timestamp }) => timestamp >= since);
  return { lines: tail > 0 ? recent.slice(-tail) : [], cursor };
}

type Wanted = Required<Omit<Newest, "since">>;

async function newestIn(files: LogFiles, file: LogFile, wanted: Wanted): Promise<{ lines: LogLine[]; end: number }> {
  if (file.raw) return await newestInRaw(file.raw, wanted);
  const blocks = await files.blocks(file);
  let lines: LogLine[] = [];
  for (const block of blocks.toReversed()) {
    if (lines.length >= wanted.tail) break;
    const found = parseLog(await files.read(file, block)).lines.filter(({ timestamp }) => timestamp < wanted.until);
    lines = [...found, ...lines];
  }
  const last = blocks.at(-1);
  return { lines: lines.slice(-Math.max(wanted.tail, 0)), end: last ? last.from + last.length : 0 };
}

const PAGE_BYTES = 1024 * 1024;

/** Reads backwards from the end, doubling the size, until there are enough lines. */
async function newestInRaw(
  { handle, size }: NonNullable<LogFile["raw"]>,
  { tail, until }: Wanted,
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

async function readOn(files: LogFiles, cursor: string): Promise<LogPage> {
  const { all } = files;
  const [first = "0", place = "0"] = (cursor === LOG_BEGIN ? BEGIN : cursor).split(":");
  const known = all.findIndex((file) => file.first === first);
  // A file that was deleted meanwhile is skipped.
  const begin = known >= 0 ? known : all.findIndex((file) => file.first > first.padStart(19, "0"));
  if (begin < 0) return { lines: [], cursor: cursor === LOG_BEGIN ? BEGIN : cursor };
  let page: LogPage = { lines: [], cursor };
  for (const [index, file] of all.slice(begin).entries()) {
    const { lines, end } = await pageOf(files, file, index === 0 && known >= 0 ? Number(place) : 0);
    page = { lines, cursor: `${file.first}:${end}` };
    if (lines.length > 0) break;
  }
  return page;
}

async function pageOf(files: LogFiles, file: LogFile, offset: number): Promise<{ lines: LogLine[]; end: number }> {
  if (!file.raw) return await pageOfSealed(files, file, offset);
  const { handle, size } = file.raw;
  // The file was truncated.
  const from = offset > size ? 0 : offset;
  const bytes = await readAt(handle, from, Math.min(size - from, PAGE_BYTES));
  const { lines, used } = parseLog(bytes);
  return { lines, end: from + (used === 0 && bytes.length === PAGE_BYTES ? PAGE_BYTES : used) };
}

async function pageOfSealed(
  files: LogFiles,
  file: LogFile,
  offset: number,
): Promise<{ lines: LogLine[]; end: number }> {
  let end = offset;
  for (const block of await files.blocks(file)) {
    if (block.from + block.length <= offset) continue;
    const bytes = await files.read(file, block);
    const { lines } = parseLog(bytes.subarray(Math.max(0, offset - block.from)));
    end = block.from + block.length;
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
