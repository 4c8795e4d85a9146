import type { Scope } from "./index/scope.ts";
import type { Readable } from "./select.ts";

/** Characters and bytes of answers kept. Past it all are forgotten; a longer answer is made anew each time. */
const KEPT_MOST = 1024 * 1024;

/**
 * Answers about labels and series, as JSON, until they are no longer true. Dashboards ask the same few questions over
 * and over. The span they ask about moves with the clock, but an answer depends only on the windows and blocks that the
 * span touches and on the series in them. Blocks never change, so it holds until a series comes into a window.
 */
export class QueryCache<Answer extends { length: number }> {
  readonly #parts: Readable;
  readonly #known = new Map<string, Answer>();
  #kept = 0;
  #changes = 0;

  constructor(parts: Readable) {
    this.#parts = parts;
  }

  /** What `make` says about `label` (or about all), made only when it was not known. */
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
    if (this.#kept + size > KEPT_MOST) this.#forget();
    if (size > KEPT_MOST) return;
    this.#known.set(key, answer);
    this.#kept += size;
  }

  #forget(): void {
    this.#known.clear();
    this.#kept = 0;
  }
}
