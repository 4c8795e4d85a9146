/** Publishes transactions in order, and only while this node may: what it may not say yet waits. */
import type { TransactionInfo } from "../database/state.ts";

export interface AnnouncerOptions {
  /**
   * What a fenced node captures belongs to no term: it is a divergence and never published. What is found at the start,
   * or during a late renewal, is published once the node is primary.
   */
  may(): "now" | "later" | "never";
  publish(name: string, infos: readonly TransactionInfo[]): void;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  #waiting: (() => void)[] = [];

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  transactions(name: string, infos: readonly TransactionInfo[]): void {
    this.announce(() => this.#options.publish(name, infos));
  }

  /** Runs `work` in its turn, once this node may say it. */
  announce(work: () => void): void {
    const when = this.#options.may();
    if (when === "never") return;
    this.#waiting.push(work);
    if (when === "now") this.flush();
  }

  /** Publishes what waits, if allowed now. */
  flush(): void {
    if (this.#waiting.length === 0 || this.#options.may() !== "now") return;
    for (const work of this.#waiting.splice(0)) work();
  }

  /** Discards what waits. */
  discard(): void {
    this.#waiting = [];
  }
}
