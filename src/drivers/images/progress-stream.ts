import type { PullProgress } from "#machines/runtime/image-source.ts";

/** Passes progress events from a producer to a consumer, in order. */
export class ProgressStream implements AsyncIterable<PullProgress> {
  readonly #said: PullProgress[] = [];
  #more = Promise.withResolvers<void>();
  #over = false;

  say(word: PullProgress): void {
    const last = this.#said.at(-1);
    // Only the newest progress of a layer is kept.
    if (last && last.layer === word.layer && last.state === word.state) this.#said.pop();
    this.#said.push(word);
    this.#more.resolve();
  }

  end(): void {
    this.#over = true;
    this.#more.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PullProgress> {
    for (;;) {
      const word = this.#said.shift();
      if (word) yield word;
      else if (this.#over) return;
      else {
        this.#more = Promise.withResolvers<void>();
        if (this.#said.length === 0 && !this.#over) await this.#more.promise;
      }
    }
  }
}
