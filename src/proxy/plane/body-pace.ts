import { PROXY_LIMITS } from "../limits.ts";

/**
 * How fast a request's body comes. A client that sends a byte now and then is never silent, and yet holds a connection of
 * the machine; what counts is how much came in a whole window of time.
 */
export class BodyPace {
  #since = 0;
  #bytes = 0;

  restart(now: number): void {
    this.#since = now;
    this.#bytes = 0;
  }

  came(bytes: number): void {
    this.#bytes += bytes;
  }

  /** `held`: it is not read at the moment, because the machine has to take what came before. */
  isSlow(now: number, held: boolean): boolean {
    const over = now - this.#since > PROXY_LIMITS.slow_body_ms;
    const slow = over && this.#bytes < PROXY_LIMITS.slow_body_bytes;
    if (over || held) this.restart(now);
    return slow && !held;
  }
}
