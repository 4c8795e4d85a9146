import type { PullProgress } from "#machines/runtime/image-source.ts";

/** Passes progress events from a producer to a consumer, in order. */
export class ProgressStream implements AsyncIterable<PullProgress> {
  readonly #said: PullProgress[] = [];
  #more = Promise.withResolvers<void>();
  #over = false;

  say(update: PullProgress): void {
    const last = this.#said.at(-1);
    // Only the newest progress of a layer is buffered.
    if (last && last.layer === update.layer && last.state === update.state) this.#said.pop();
    this.#said.push(update);
    this.#more.resolve();
  }

  end(): void {
    this.#over = true;
    this.#more.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PullProgress> {
    for (;;) {
      const update = this.#said.shift();
      if (update) yield update;
      else if (this.#over) return;
      else {
        this.#more = Promise.withResolvers<void>();
        if (this.#said.length === 0 && !this.#over) await this.#more.promise;
      }
    }
  }
}
