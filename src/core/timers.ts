import type { Clock } from "./clock.ts";

interface Entry {
  key: string;
  /** On the monotonic clock. */
  due: number;
  run: () => void;
}

/**
 * Many timers with one sleeper. A timer has a key; setting it again moves it. Due times are on the monotonic clock, so
 * that a wall clock set forward fires nothing early.
 */
export class Timers {
  readonly #clock: Clock;
  /** A binary heap by `due`; moved or cancelled entries stay until they surface. */
  readonly #heap: Entry[] = [];
  readonly #live = new Map<string, Entry>();
  #sleeper: AbortController | undefined;
  #wakes_at = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#live.size;
  }

  set(key: string, in_ms: number, run: () => void): void {
    if (this.#closed) return;
    const entry: Entry = { key, due: this.#clock.monotonic() + Math.max(0, in_ms), run };
    this.#live.set(key, entry);
    push(this.#heap, entry);
    if (entry.due < this.#wakes_at) this.#sleep();
  }

  cancel(key: string): void {
    this.#live.delete(key);
  }

  close(): void {
    this.#closed = true;
    this.#live.clear();
    this.#heap.length = 0;
    this.#sleeper?.abort();
  }

  #sleep(): void {
    this.#sleeper?.abort();
    const first = this.#first();
    this.#wakes_at = first?.due ?? Number.POSITIVE_INFINITY;
    if (!first) return;
    const sleeper = new AbortController();
    this.#sleeper = sleeper;
    const wait = Math.min(MAX_SLEEP_MS, Math.max(0, first.due - this.#clock.monotonic()));
    this.#clock.sleep(wait, sleeper.signal).then(
      () => this.#fire(),
      () => {}, // Replaced by an earlier timer, or closed.
    );
  }

  #fire(): void {
    const now = this.#clock.monotonic();
    let first = this.#first();
    while (first && first.due <= now) {
      pop(this.#heap);
      this.#live.delete(first.key);
      first.run();
      first = this.#first();
    }
    this.#sleep();
  }

  /** The next valid timer. */
  #first(): Entry | undefined {
    let first = this.#heap[0];
    while (first && this.#live.get(first.key) !== first) {
      pop(this.#heap);
      first = this.#heap[0];
    }
    return first;
  }
}

/** Runtime timers hold 31 bits of milliseconds; longer sleeps are split. */
const MAX_SLEEP_MS = 2 ** 31 - 1;

function push(heap: Entry[], entry: Entry): void {
  let at = heap.push(entry) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as Entry;
    if (above.due <= entry.due) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as Entry).due < (heap[child] as Entry).due) child++;
    if ((heap[child] as Entry).due >= last.due) break;
    heap[at] = heap[child] as Entry;
    at = child;
  }
  heap[at] = last;
}
