import type { Clock } from "#core/clock.ts";

interface Use {
  open: number;
  /** By the monotonic clock. */
  last: number;
}

/** Who uses which sprite in this process: none is put to sleep while a command runs or a connection is open. */
export class Activity {
  readonly #clock: Clock;
  readonly #began: number;
  readonly #uses = new Map<string, Use>();
  readonly #falling = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#began = clock.monotonic();
  }

  /** Counts one use while `work` lasts. A sprite that is about to sleep does so first, and is woken by the work. */
  async during<T>(id: string, work: () => Promise<T>): Promise<T> {
    const end = await this.begin(id);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** Begins a use; the function that is returned ends it. */
  async begin(id: string): Promise<() => void> {
    for (let falling = this.#falling.get(id); falling; falling = this.#falling.get(id)) await falling;
    const use = this.#uses.get(id) ?? { open: 0, last: 0 };
    this.#uses.set(id, use);
    use.open++;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      use.open--;
      use.last = this.#clock.monotonic();
    };
  }

  /** It is used by somebody who does not say so here. */
  touch(id: string): void {
    const use = this.#uses.get(id) ?? { open: 0, last: 0 };
    use.last = this.#clock.monotonic();
    this.#uses.set(id, use);
  }

  /** Milliseconds since its last use; 0 while it is used. After our start none has been idle for longer than we run. */
  idle(id: string): number {
    const use = this.#uses.get(id);
    if (use && use.open > 0) return 0;
    return this.#clock.monotonic() - Math.max(use?.last ?? 0, this.#began);
  }

  /** Puts a sprite to sleep unless it is used, or was within the time. A use that begins meanwhile waits. */
  async sleep(id: string, after_ms: number, work: () => Promise<void>): Promise<void> {
    if (this.idle(id) < after_ms || this.#falling.has(id)) return;
    const done = work();
    const falling = done.then(
      () => void this.#falling.delete(id),
      () => void this.#falling.delete(id),
    );
    this.#falling.set(id, falling);
    await done;
  }

  forget(id: string): void {
    if (this.#uses.get(id)?.open === 0) this.#uses.delete(id);
  }
}
