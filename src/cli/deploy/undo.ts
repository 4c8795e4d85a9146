/** The rollback steps of a deploy, recorded as it proceeds. */
import { messageOf } from "#core/assert.ts";

interface Step {
  what: string;
  undo(): Promise<unknown>;
}

export interface Undone {
  what: string;
  /** Why the rollback of this step failed. */
  error?: string;
}

export class UndoLog {
  readonly #steps: Step[] = [];

  /** Call before or right after the step, so that partial steps are rolled back too. */
  add(what: string, undo: () => Promise<unknown>): void {
    this.#steps.push({ what, undo });
  }

  get size(): number {
    return this.#steps.length;
  }

  /** Keeps what was done so far. */
  clear(): void {
    this.#steps.length = 0;
  }

  /** Rolls back all steps, newest first; a failure does not stop the others. */
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
