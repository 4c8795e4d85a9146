/** A search over the logs of machines: its order, where it goes on, and what it found. */
import type { LogFilter } from "./filter.ts";
import type { LogLine } from "./line.ts";

/** A line's place in the order of all lines: its time in nanoseconds, its machine, and its place in the machine's log. */
export interface LogKey {
  at: string;
  id: string;
  first: string;
  offset: number;
}

export type LogOrder = "newest" | "oldest";

export interface LogSearch {
  /** Machines of one host. */
  ids: readonly string[];
  filter: LogFilter;
  /** Milliseconds; `until` is not included. */
  since?: number;
  until?: number;
  order: LogOrder;
  limit: number;
  /** Only lines that follow this place in the order. */
  after?: LogKey;
}

export interface FoundLine extends LogLine {
  key: LogKey;
}

export interface LogFound {
  /** In the order of the search. */
  lines: FoundLine[];
  /** Where to go on; absent when everything was searched. */
  next?: LogKey;
  /** The limit that ended it early. */
  stopped?: "time" | "bytes";
  /** Where each machine's log ended: cursors of `logs`, for lines written after the search. */
  ends: Record<string, string>;
  /** Machines with logs that are damaged. */
  damaged: string[];
}

export const nanosOfMs = (ms: number): string => `${String(Math.max(0, Math.floor(ms))).padStart(13, "0")}000000`;

function compareKeys(a: LogKey, b: LogKey): number {
  return compare(a.at, b.at) || compare(a.id, b.id) || compare(a.first, b.first) || Math.sign(a.offset - b.offset);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Below zero when `a` comes before `b`. */
export const inOrder =
  (order: LogOrder) =>
  (a: LogKey, b: LogKey): number =>
    order === "oldest" ? compareKeys(a, b) : compareKeys(b, a);

/** The place before all lines of this time, in the order of the search. */
export function placeBefore(at: string, order: LogOrder): LogKey {
  return order === "oldest"
    ? { at, id: "", first: "", offset: -1 }
    : { at, id: "~", first: "~", offset: Number.MAX_SAFE_INTEGER };
}

/** Keeps the first lines of a search's order. */
export class FirstLines {
  readonly #lines: FoundLine[] = [];
  readonly #limit: number;
  readonly #before: (a: LogKey, b: LogKey) => number;

  constructor({ limit, order }: Pick<LogSearch, "limit" | "order">) {
    this.#limit = limit;
    this.#before = inOrder(order);
  }

  add(line: FoundLine): void {
    const lines = this.#lines;
    // Mostly it belongs at the end.
    let at = lines.length;
    if (at >= this.#limit && this.#before(line.key, this.#key(at - 1)) >= 0) return;
    let low = 0;
    while (low < at) {
      const middle = (low + at) >>> 1;
      if (this.#before(this.#key(middle), line.key) < 0) low = middle + 1;
      else at = middle;
    }
    lines.splice(at, 0, line);
    if (lines.length > this.#limit) lines.pop();
  }

  /** Whether lines from this place on cannot be among the first. */
  isFullBefore(place: LogKey): boolean {
    return this.#lines.length >= this.#limit && this.#before(this.#key(this.#lines.length - 1), place) < 0;
  }

  /** Those before `end`, behind which not everything was searched. */
  take(end?: LogKey): FoundLine[] {
    return end ? this.#lines.filter(({ key }) => this.#before(key, end) < 0) : this.#lines;
  }

  #key(index: number): LogKey {
    return this.#lines[index]?.key as LogKey;
  }
}

/** The first lines of what several hosts found, up to the first place behind which one of them has not searched. */
export function mergeFound(found: readonly LogFound[], { limit, order }: Pick<LogSearch, "limit" | "order">): LogFound {
  const before = inOrder(order);
  const [end] = found.flatMap(({ next }) => next ?? []).toSorted(before);
  const all = found.flatMap(({ lines }) => lines).toSorted((a, b) => before(a.key, b.key));
  // The end is a line's own place when a host found as many as it may.
  const complete = end ? all.filter(({ key }) => before(key, end) <= 0) : all;
  const lines = complete.slice(0, limit);
  const next = complete.length > limit ? lines.at(-1)?.key : end;
  const stopped = complete.length >= limit ? undefined : found.find(({ stopped }) => stopped)?.stopped;
  return {
    lines,
    ...(next ? { next } : {}),
    ...(stopped ? { stopped } : {}),
    ends: Object.assign({}, ...found.map(({ ends }) => ends)) as Record<string, string>,
    damaged: found.flatMap(({ damaged }) => damaged),
  };
}

const CURSOR = /^([on])\.(\d{19})\.([0-9a-z~]{0,40})\.([0-9~]{0,19})\.(-?\d{1,16})$/;

/** A cursor as clients have it. */
export const writeCursor = ({ at, id, first, offset }: LogKey, order: LogOrder): string =>
  `${order.slice(0, 1)}.${at}.${id}.${first}.${offset}`;

export function readCursor(text: string): { order: LogOrder; after: LogKey } | undefined {
  const [, order, at, id, first, offset] = CURSOR.exec(text) ?? [];
  if (at === undefined || id === undefined || first === undefined) return undefined;
  return { order: order === "o" ? "oldest" : "newest", after: { at, id, first, offset: Number(offset) } };
}
