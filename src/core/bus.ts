import { LIMITS } from "./limits.ts";

/**
 * Publishes changes inside the platform. Messages are not stored: a subscriber reads the store when it gets one, so a
 * lost or duplicate message costs one read and never correctness. `LocalBus` serves one process; several processes on
 * one PostgreSQL use `machines/events/shared-bus.ts`.
 */
export interface Bus<Message> {
  /** Never throws and never waits: a failing subscriber affects only itself. */
  publish(topic: string, message: Message): void;
  /** Returns the unsubscribe function. Fails with `overloaded` past the limit `bus_listeners`. */
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

  /** Number of subscribers; tests use it to find leaks. */
  get listeners(): number {
    return this.#listeners;
  }

  /** Whether the topic has subscribers. */
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
    // Wrapped, so that the same function subscribed twice is two subscribers.
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
