/**
 * Searches the logs of machines in the order of time. Blocks are read one by one, each with the times of its lines, and
 * only until no other can have an earlier line in that order.
 */
import type { Clock } from "#core/clock.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { compileFilter, type LogMatcher, type Needle } from "#machines/logs/filter.ts";
import {
  FirstLines,
  inOrder,
  type LogFound,
  type LogKey,
  type LogSearch,
  nanosOfMs,
  placeBefore,
} from "#machines/logs/search.ts";
import type { MachinePaths } from "../layout.ts";
import { type LogFile, LogFiles, type OnDamage } from "./files.ts";
import { wantedGrams } from "./grams.ts";
import { endOf } from "./logs.ts";
import { type Block, LineReader, nanosOf, STAMP_CHARS, STREAM_AT, type StampedLine, stampAt } from "./parse.ts";

interface SearchParts {
  paths(id: string): Pick<MachinePaths, "log" | "logs">;
  clock: Clock;
  onDamage: OnDamage;
}

/** A file, or one of its blocks, and the first time in the search's order that it may have. */
interface Unit {
  id: string;
  file: LogFile;
  block?: Block;
  edge: string;
}

/** Log folders that are opened at a time. */
const OPENED = 16;

export async function searchLogs(search: LogSearch, parts: SearchParts): Promise<LogFound> {
  const searching = new Searching(search, parts);
  try {
    for (let at = 0; at < search.ids.length; at += OPENED)
      await Promise.all(search.ids.slice(at, at + OPENED).map((id) => searching.open(id)));
    return await searching.run();
  } finally {
    await searching.close();
  }
}

class Searching {
  readonly #search: LogSearch;
  readonly #parts: SearchParts;
  readonly #matcher: LogMatcher;
  readonly #grams: readonly number[];
  readonly #first: FirstLines;
  readonly #before: (a: LogKey, b: LogKey) => number;
  /** Nanoseconds: lines from `oldest` up to, not including, `end`. */
  readonly #oldest: string;
  readonly #end: string;
  readonly #opened = new Map<string, LogFiles>();
  readonly #ends: Record<string, string> = {};
  readonly #damaged = new Set<string>();
  /** In the order of their edges. */
  #units: Unit[] = [];

  constructor(search: LogSearch, parts: SearchParts) {
    const { filter, since = 0, until, order, after } = search;
    this.#search = search;
    this.#parts = parts;
    this.#matcher = compileFilter(filter);
    this.#grams = wantedGrams(this.#matcher.texts);
    this.#first = new FirstLines(search);
    this.#before = inOrder(order);
    const [from, to] = [nanosOfMs(since), until === undefined ? LAST : nanosOfMs(until)];
    this.#oldest = order === "oldest" && after && after.at > from ? after.at : from;
    // Other lines of the cursor's own time may follow it.
    this.#end = order === "newest" && after && after.at < to ? `${after.at}+` : to;
  }

  async open(id: string): Promise<void> {
    const onDamage: OnDamage = (file, error) => {
      this.#damaged.add(id);
      this.#parts.onDamage(file, error);
    };
    const files = await LogFiles.open(this.#parts.paths(id), onDamage);
    this.#opened.set(id, files);
    for (const file of files.all) this.#add({ id, file }, file);
  }

  async run(): Promise<LogFound> {
    const { order, limit } = this.#search;
    this.#units.sort((a, b) => this.#byEdge(a, b));
    const began = this.#parts.clock.now();
    const start = this.#units[0]?.edge;
    let bytes = 0;
    let stopped: LogFound["stopped"];
    let end: LogKey | undefined;
    for (let unit = this.#units.shift(); unit; unit = this.#units.shift()) {
      const place = placeBefore(unit.edge, order);
      if (this.#first.isFullBefore(place)) break;
      // A search that stops must have got further, or the next one would do the same again.
      if (stopped !== undefined && unit.edge !== start) {
        end = place;
        break;
      }
      bytes += await this.#look(unit);
      if (bytes > MACHINE_LIMITS.logs_search_bytes) stopped = "bytes";
      else if (this.#parts.clock.now() - began > MACHINE_LIMITS.logs_search_ms) stopped = "time";
    }
    const lines = this.#first.take(end);
    const next = lines.length === limit ? lines.at(-1)?.key : end;
    await this.#findEnds();
    return {
      lines,
      ...(next ? { next } : {}),
      ...(end && stopped ? { stopped } : {}),
      ends: this.#ends,
      damaged: [...this.#damaged],
    };
  }

  async close(): Promise<void> {
    for (const files of this.#opened.values()) await files[Symbol.asyncDispose]();
  }

  /** Reads a block, or finds the blocks of a file; returns the bytes of text that were read. */
  async #look({ id, file, block }: Unit): Promise<number> {
    const files = this.#opened.get(id);
    if (!files) return 0;
    if (block) {
      await this.#searchBlock(id, file, block, await files.read(file, block));
      return block.length;
    }
    for (const each of await files.blocks(file, this.#grams)) this.#add({ id, file, block: each }, each);
    this.#units.sort((a, b) => this.#byEdge(a, b));
    return file.raw?.size ?? 0;
  }

  #add(unit: Omit<Unit, "edge">, { min, max }: { min: string; max: string }): void {
    if (max < this.#oldest || min >= this.#end) return;
    const edge =
      this.#search.order === "oldest" ? (min > this.#oldest ? min : this.#oldest) : max < this.#end ? max : this.#end;
    this.#units.push({ ...unit, edge: edge.slice(0, LAST.length) });
  }

  #byEdge(a: Unit, b: Unit): number {
    const before = a.edge < b.edge ? -1 : a.edge > b.edge ? 1 : 0;
    return this.#search.order === "oldest" ? before : -before;
  }

  async #searchBlock(id: string, file: LogFile, block: Block, bytes: Buffer): Promise<void> {
    const { after } = this.#search;
    for (const { text, offset } of candidates(bytes, this.#matcher.needle)) {
      const { stamp, timestamp, stream, message } = text;
      const at = nanosOf(stamp);
      if (at < this.#oldest || at >= this.#end) continue;
      const key = { at, id, first: file.first, offset: block.from + offset };
      if (after && this.#before(after, key) >= 0) continue;
      if (this.#matcher.matches(message)) this.#first.add({ timestamp, stream, message, key });
    }
  }

  /** Where readers go on: the ends of the files as they were opened. */
  async #findEnds(): Promise<void> {
    for (const [id, files] of this.#opened) {
      const last = files.all.at(-1);
      if (last) this.#ends[id] = await endOf(files, last);
    }
  }
}

/** After all times. */
const LAST = "9".repeat(19);

interface Candidate {
  text: StampedLine;
  offset: number;
}

/** Lines that may match, each with its place in the block. */
function* candidates(bytes: Buffer, needle: Needle | undefined): Generator<Candidate> {
  if (!needle) return yield* allLines(bytes);
  const text = bytes.toString("latin1");
  // What is looked for may begin in one part of a line and end in the next.
  const parts = new Set<number>();
  for (const begin of partsIn(text)) if (!parts.has(begin)) yield* lineInParts(bytes, begin, parts);
  const find = finder(text, needle);
  for (let found = find(0); found >= 0; ) {
    const begin = bytes.lastIndexOf(NEWLINE, found) + 1;
    const end = bytes.indexOf(NEWLINE, found);
    if (end < 0) return;
    const line = parts.has(begin) ? undefined : new LineReader().take(bytes.toString("utf8", begin, end));
    if (line && stampAt(bytes, begin)) yield { text: line, offset: begin };
    found = find(end);
  }
}

/** Where lines begin that go on in another one. */
function* partsIn(text: string): Generator<number> {
  for (const words of [" stdout P ", " stderr P "])
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
      const begin = at - STAMP_CHARS;
      if (begin === 0 || text[begin - 1] === "\n") yield begin;
    }
}

/** The line that begins here, up to its last part; adds where its parts are. */
function* lineInParts(bytes: Buffer, begin: number, parts: Set<number>): Generator<Candidate> {
  const reader = new LineReader();
  const stream = bytes[begin + STREAM_AT];
  for (let at = begin, end = bytes.indexOf(NEWLINE, at); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
    if (bytes[at + STREAM_AT] === stream) {
      parts.add(at);
      const line = reader.take(bytes.toString("utf8", at, end));
      if (line && stampAt(bytes, at)) yield { text: line, offset: at };
      if (!reader.is_within) return;
    }
    at = end + 1;
  }
}

/** Where the needle is next; -1 when it is not. text is found in much less time than patterns. */
function finder(text: string, needle: Needle): (from: number) => number {
  if ("text" in needle) {
    const lower = text.toLowerCase();
    return (from) => lower.indexOf(needle.text, from);
  }
  const pattern = new RegExp(needle.pattern, "gi");
  return (from) => {
    pattern.lastIndex = from;
    return pattern.exec(text)?.index ?? -1;
  };
}

const NEWLINE = 10;

function* allLines(bytes: Buffer): Generator<Candidate> {
  const reader = new LineReader();
  for (let at = 0, end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
    const line = reader.take(bytes.toString("utf8", at, end));
    if (line && stampAt(bytes, at)) yield { text: line, offset: at };
    at = end + 1;
  }
}
