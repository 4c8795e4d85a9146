import { PROXY_LIMITS } from "../limits.ts";

/**
 * The minimum rate of a request's body. A client that sends a byte now and then is never silent, and yet holds a
 * connection of the machine; so the bytes received in a whole window of time count.
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

  /** `held`: it is not read at the moment, because the machine must first take the earlier bytes. */
  isSlow(now: number, held: boolean): boolean {
    const over = now - this.#since > PROXY_LIMITS.slow_body_ms;
    const slow = over && this.#bytes < PROXY_LIMITS.slow_body_bytes;
    if (over || held) this.restart(now);
    return slow && !held;
  }
}
