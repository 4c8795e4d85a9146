import type { Clock } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const COUNTED = 6;
const AROUND = 32 ** COUNTED;

/**
 * Ids for requests, at the price of a few characters each: shaped and ordered like all others (time first), but
 * where those have chance at the end, these have a number that is counted up after a part that no other worker
 * has. They name requests; they are not secrets.
 */
export class RequestIds {
  readonly #clock: Clock;
  readonly #own: string;
  #ms = -1;
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
      this.#time = text(now, 10);
    }
    this.#count = (this.#count + 1) % AROUND;
    return this.#time + this.#own + text(this.#count, COUNTED);
  }
}

function text(value: number, length: number): string {
  let rest = value;
  let out = "";
  for (let i = 0; i < length; i++) {
    out = CROCKFORD.charAt(rest % 32) + out;
    rest = Math.floor(rest / 32);
  }
  return out;
}
