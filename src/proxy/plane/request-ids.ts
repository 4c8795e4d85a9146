import type { Clock } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Two characters for each ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, i) => CROCKFORD.charAt(i >>> 5) + CROCKFORD.charAt(i & 31));
/** Characters of the number, which then begins anew. */
const COUNTED = 6;

/**
 * Ids for requests, at the price of a few characters each: shaped and ordered like all others (time first), but
 * where those have chance at the end, these have a number that is counted up after a part that no other worker
 * has. They name requests; they are not secrets.
 */
export class RequestIds {
  readonly #clock: Clock;
  readonly #own: string;
  #ms = -1;
  /** The part that is the same for all of this millisecond. */
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
