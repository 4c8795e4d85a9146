/** What a deploy did so far, so that a deploy that fails can be undone. */
import { messageOf } from "#core/assert.ts";

interface Step {
  what: string;
  undo(): Promise<unknown>;
}

export interface Undone {
  what: string;
  /** Why it could not be undone. */
  error?: string;
}

export class UndoLog {
  readonly #steps: Step[] = [];

  /** To be called before or right after the step, so that a step that fails halfway is undone, too. */
  add(what: string, undo: () => Promise<unknown>): void {
    this.#steps.push({ what, undo });
  }

  get size(): number {
    return this.#steps.length;
  }

  /** What was done so far stays, whatever comes. */
  clear(): void {
    this.#steps.length = 0;
  }

  /** Undoes every step, the newest first; one that cannot be undone does not keep the others from it. */
  async run(onUndone: (undone: Undone) => void): Promise<Undone[]> {
    const all: Undone[] = [];
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      const { what } = step;
      const undone = await step.undo().then(
        (): Undone => ({ what }),
        (thrown: unknown): Undone => ({ what, error: messageOf(thrown) }),
      );
      all.push(undone);
      onUndone(undone);
    }
    return all;
  }
}
