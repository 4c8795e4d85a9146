import type { Clock } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Two characters per ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, i) => CROCKFORD.charAt(i >>> 5) + CROCKFORD.charAt(i & 31));
/** Characters of the counter, which then wraps. */
const COUNTED = 6;

/**
 * Generates request ids cheaply: formatted and ordered like ULIDs (time first), but with a counter after a part unique
 * to the worker instead of random bits. They are not secrets.
 */
export class RequestIds {
  readonly #clock: Clock;
  readonly #own: string;
  #ms = -1;
  /** The part shared by all ids of this millisecond. */
  #time = "";
  #count = 0;

  constructor(clock: Clock, ids: Ids) {
    this.#clock = clock;
    this.#own = ids.ulid().slice(10, 26 - COUNTED);
  }

  next(): string {
    const now = this.#clock.now();
    if (now !== this.#ms) {
      this.#ms = now;
      this.#time = timeText(now) + this.#own;
    }
    this.#count = (this.#count + 1) & 0x3fff_ffff;
    return this.#time + pair(this.#count >>> 20) + pair(this.#count >>> 10) + pair(this.#count);
  }
}

const pair = (bits: number): string => PAIRS[bits & 1023] as string;

/** Ten characters. */
function timeText(ms: number): string {
  const [high, low] = [Math.floor(ms / 2 ** 20), ms % 2 ** 20];
  return pair(high >>> 20) + pair(high >>> 10) + pair(high) + pair(low >>> 10) + pair(low);
}
