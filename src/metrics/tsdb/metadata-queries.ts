import type { Matcher } from "../source.ts";
import { matchSeries } from "./match.ts";
import { RefSet } from "./postings.ts";
import { presentIn, type Readable, Selected } from "./select.ts";
import type { SeriesTable } from "./series-table.ts";

/** Which series a question about names and labels is about. */
export interface Scope {
  /** All when absent. */
  selector?: readonly (readonly Matcher[])[];
  start_ms: number;
  end_ms: number;
  /** Answers at most so many; 0 or absent is all. */
  limit?: number;
}

/** Rendered pairs kept. Past it all are forgotten and made again when asked for. */
const RENDERED_MOST = 50_000;

/** Questions that need no samples: which series, which label names, which values. */
export class MetadataQueries {
  readonly #parts: Readable;
  /** By pair number: `"name":"value"`, so that an answer of thousands of series is only put together. */
  readonly #rendered = new Map<number, string>();
  #generation = 0;

  constructor(parts: Readable) {
    this.#parts = parts;
  }

  /** A JSON array of label objects. */
  series(scope: Scope): Uint8Array {
    const { table } = this.#parts;
    if (table.generation !== this.#generation || this.#rendered.size > RENDERED_MOST) this.#rendered.clear();
    this.#generation = table.generation;
    const rows: string[] = [];
    for (const ref of limited(this.#refs(scope), scope.limit)) rows.push(this.#render(table, ref));
    return Buffer.from(`[${rows.join(",")}]`);
  }

  labelNames(scope: Scope): string[] {
    const { table } = this.#parts;
    if (!scope.selector) {
      const present = presentIn(this.#parts, scope.start_ms, scope.end_ms);
      const used = (pair: number): boolean => table.postings(pair).some(present);
      const names = [...table.names.values()].filter(({ pairs }) => [...pairs.values()].some(used));
      return limited(names.map(({ name }) => name).sort(), scope.limit);
    }
    const seen = new RefSet(table.pairCount);
    for (const ref of this.#refs(scope)) for (const pair of table.pairs(ref)) seen.add(pair);
    const names = new Set([...seen.list()].map((pair) => table.pairText(pair).name));
    return limited([...names].sort(), scope.limit);
  }

  labelValues(name: string, scope: Scope): string[] {
    const { table } = this.#parts;
    const pairs = table.names.get(name)?.pairs;
    if (!pairs) return [];
    const present = presentIn(this.#parts, scope.start_ms, scope.end_ms);
    let counts = present;
    if (scope.selector) {
      const matched = new RefSet(table.count);
      matched.addAll(matchSeries(table, scope.selector));
      counts = (ref) => matched.has(ref) && present(ref);
    }
    // One series is enough for a value, and mostly the first will do.
    const values = [...pairs].filter(([, pair]) => table.postings(pair).some(counts)).map(([value]) => value);
    return limited(values.sort(), scope.limit);
  }

  #refs({ selector, start_ms, end_ms }: Scope): Uint32Array {
    const { table } = this.#parts;
    const matched = selector ? matchSeries(table, selector) : table.all();
    return new Selected(this.#parts, matched, start_ms, end_ms).refs;
  }

  #render(table: SeriesTable, ref: number): string {
    let text = "";
    for (const pair of table.pairs(ref)) {
      let rendered = this.#rendered.get(pair);
      if (rendered === undefined) {
        const { name, value } = table.pairText(pair);
        rendered = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
        this.#rendered.set(pair, rendered);
      }
      text += text === "" ? rendered : `,${rendered}`;
    }
    return `{${text}}`;
  }
}

function limited<List extends { length: number; slice(start: number, end: number): List }>(
  list: List,
  limit: number | undefined,
): List {
  return limit === undefined || limit === 0 || list.length <= limit ? list : list.slice(0, limit);
}
