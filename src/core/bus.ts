import { LIMITS } from "./limits.ts";

/**
 * Tells the rest of the platform that something happened. Nothing is kept: a message is only a reason to look
 * at the store, so a lost or doubled one costs a look and never a fact. Inside one process it is `LocalBus`;
 * several processes on one PostgreSQL have `machines/events/shared-bus.ts` behind the same two verbs.
 */
export interface Bus<Message> {
  /** Never throws and never waits: a listener that fails harms only itself. */
  publish(topic: string, message: Message): void;
  /** Answers the function that ends it. Fails with `overloaded` past the limit `bus_listeners`. */
  subscribe(topic: string, listener: (message: Message) => void): () => void;
}

export class LocalBus<Message> implements Bus<Message> {
  readonly #topics = new Map<string, Set<(message: Message) => void>>();
  readonly #onError: (thrown: unknown) => void;
  readonly #onFull: () => never;
  #listeners = 0;

  constructor(parts: { onError(thrown: unknown): void; onFull(): never }) {
    this.#onError = parts.onError;
    this.#onFull = parts.onFull;
  }

  /** How many are listening; a test's way to see that nobody was forgotten. */
  get listeners(): number {
    return this.#listeners;
  }

  /** Whether anybody listens. */
  wants(topic: string): boolean {
    return this.#topics.has(topic);
  }

  publish(topic: string, message: Message): void {
    const listeners = this.#topics.get(topic);
    if (!listeners) return;
    for (const listener of listeners) {
      try {
        listener(message);
      } catch (thrown) {
        this.#onError(thrown);
      }
    }
  }

  subscribe(topic: string, listener: (message: Message) => void): () => void {
    if (this.#listeners >= LIMITS.bus_listeners) this.#onFull();
    const listeners = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, listeners);
    // Wrapped, so that the same function subscribed twice is two listeners.
    const own = (message: Message): void => listener(message);
    listeners.add(own);
    this.#listeners++;
    return () => {
      if (!listeners.delete(own)) return;
      this.#listeners--;
      if (listeners.size === 0 && this.#topics.get(topic) === listeners) this.#topics.delete(topic);
    };
  }
}
