import type { Scope } from "./index/scope.ts";
import type { Readable } from "./select.ts";

/** Characters and bytes of cached results. Past it the cache is cleared; a longer result is not cached. */
const KEPT_MOST = 1024 * 1024;

/**
 * Caches results about labels and series, as JSON, while they are valid. Dashboards repeat the same few queries. Their
 * range moves with the clock, but a result depends only on the windows and blocks that overlap the range and on the
 * series in them. Blocks never change, so a result is valid until a series enters a window.
 */
export class QueryCache<Answer extends { length: number }> {
  readonly #parts: Readable;
  readonly #known = new Map<string, Answer>();
  #size = 0;
  #changes = 0;

  constructor(parts: Readable) {
    this.#parts = parts;
  }

  /** The result of `make` for `label` (or for all), computed only when it is not cached. */
  of(label: string | undefined, scope: Scope, make: () => Answer): Answer {
    const { changes } = this.#parts.head;
    if (changes !== this.#changes) this.#forget();
    this.#changes = changes;
    const key = this.#keyOf(label, scope);
    let answer = this.#known.get(key);
    if (answer === undefined) {
      answer = make();
      this.#keep(key, answer);
    }
    return answer;
  }

  #keyOf(label: string | undefined, { selector, start_ms, end_ms, limit = 0 }: Scope): string {
    const { head, blocks } = this.#parts;
    const windows = head.windows.filter((window) => window.overlaps(start_ms, end_ms)).map(({ id }) => id);
    const written = blocks.filter((block) => block.overlaps(start_ms, end_ms)).map(({ name }) => name.sequence);
    return JSON.stringify([label, selector, limit, windows, written]);
  }

  #keep(key: string, answer: Answer): void {
    const size = key.length + answer.length;
    if (this.#size + size > KEPT_MOST) this.#forget();
    if (size > KEPT_MOST) return;
    this.#known.set(key, answer);
    this.#size += size;
  }

  #forget(): void {
    this.#known.clear();
    this.#size = 0;
  }
}
