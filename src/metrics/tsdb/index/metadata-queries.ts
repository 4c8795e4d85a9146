import { ByteWriter } from "../bytes.ts";
import { QueryCache } from "../query-cache.ts";
import { presentIn, type Readable, Selected } from "../select.ts";
import { matchSeries } from "./match.ts";
import { RefSet } from "./postings.ts";
import type { Scope } from "./scope.ts";
import type { SeriesTable } from "./series-table.ts";

const OPEN = 0x5b;
const CLOSE = 0x5d;
const COMMA = 0x2c;
const BRACE = 0x7b;
const END_BRACE = 0x7d;
/** Cached rendered pairs. Past it the cache is cleared. */
const RENDERED_MOST = 50_000;

/** Queries that need no samples: series, label names and label values. Results are JSON arrays. */
export class MetadataQueries {
  readonly #parts: Readable;
  /** By pair number: `"name":"value"`, so that an answer of thousands of series is only put together. */
  readonly #rendered = new Map<number, Uint8Array>();
  #generation = 0;
  readonly #lists: QueryCache<string>;
  readonly #series: QueryCache<Uint8Array>;

  constructor(parts: Readable) {
    this.#parts = parts;
    this.#lists = new QueryCache(parts);
    this.#series = new QueryCache(parts);
  }

  /** Label objects. The bytes are the caller's, to hand on or to change. */
  series(scope: Scope): Uint8Array {
    return this.#series.of(undefined, scope, () => this.#makeSeries(scope)).slice();
  }

  #makeSeries(scope: Scope): Uint8Array {
    const { table } = this.#parts;
    if (table.generation !== this.#generation || this.#rendered.size > RENDERED_MOST) this.#rendered.clear();
    this.#generation = table.generation;
    const out = new ByteWriter(1 << 16);
    out.byte(OPEN);
    for (const ref of limited(this.#refs(scope), scope.limit)) {
      if (out.at > 1) out.byte(COMMA);
      this.#render(table, ref, out);
    }
    out.byte(CLOSE);
    return out.view().slice();
  }

  labelNames(scope: Scope): string {
    return this.#lists.of(undefined, scope, () => JSON.stringify(this.#labelNames(scope)));
  }

  labelValues(name: string, scope: Scope): string {
    return this.#lists.of(name, scope, () => JSON.stringify(this.#labelValues(name, scope)));
  }

  #labelNames(scope: Scope): string[] {
    const { table } = this.#parts;
    if (!scope.selector) {
      const present = presentIn(this.#parts, scope.start_ms, scope.end_ms);
      const used = (pair: number): boolean => table.someOf(pair, present);
      const names = [...table.names.values()].filter(({ pairs }) => [...pairs.values()].some(used));
      return limited(names.map(({ name }) => name).sort(), scope.limit);
    }
    const seen = new RefSet(table.pairCount);
    for (const ref of this.#refs(scope)) for (const pair of table.pairs(ref)) seen.add(pair);
    const names = new Set([...seen.list()].map((pair) => table.pairText(pair).name));
    return limited([...names].sort(), scope.limit);
  }

  #labelValues(name: string, scope: Scope): string[] {
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
    const values: string[] = [];
    for (const [value, pair] of pairs) if (table.someOf(pair, counts)) values.push(value);
    return limited(values.sort(), scope.limit);
  }

  #refs({ selector, start_ms, end_ms }: Scope): Uint32Array {
    const { table } = this.#parts;
    const matched = selector ? matchSeries(table, selector) : table.all();
    return new Selected(this.#parts, matched, start_ms, end_ms).refs;
  }

  /** Bytes and not text: thousands of short-lived strings would cost more than they say. */
  #render(table: SeriesTable, ref: number, out: ByteWriter): void {
    out.byte(BRACE);
    const pairs = table.pairs(ref);
    for (let i = 0; i < pairs.length; i++) {
      const pair = pairs[i] as number;
      let rendered = this.#rendered.get(pair);
      if (rendered === undefined) {
        const { name, value } = table.pairText(pair);
        rendered = Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
        this.#rendered.set(pair, rendered);
      }
      if (i > 0) out.byte(COMMA);
      out.raw(rendered);
    }
    out.byte(END_BRACE);
  }
}

function limited<List extends { length: number; slice(start: number, end: number): List }>(
  list: List,
  limit: number | undefined,
): List {
  return limit === undefined || limit === 0 || list.length <= limit ? list : list.slice(0, limit);
}
