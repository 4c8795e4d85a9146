import { SCRAPE_LIMITS } from "./limits.ts";

/** Memory for responses being received, shared by all targets, so that a hundred oversized ones do not exhaust it. */
export class Budget {
  readonly #byOrg = new Map<string, number>();
  #all = 0;

  /** Opens the allowance of one response, returned with `release`. */
  open(org_id: string): Allowance {
    return new Allowance((bytes) => this.#take(org_id, bytes));
  }

  /** False when there is no room; negative gives back. */
  #take(org_id: string, bytes: number): boolean {
    const used = this.#byOrg.get(org_id) ?? 0;
    const full = used + bytes > SCRAPE_LIMITS.org_bytes_in_flight || this.#all + bytes > SCRAPE_LIMITS.bytes_in_flight;
    if (bytes > 0 && full) return false;
    this.#all += bytes;
    if (used + bytes === 0) this.#byOrg.delete(org_id);
    else this.#byOrg.set(org_id, used + bytes);
    return true;
  }
}

export class Allowance {
  readonly #take: (bytes: number) => boolean;
  #taken = 0;

  constructor(take: (bytes: number) => boolean) {
    this.#take = take;
  }

  take(bytes: number): boolean {
    if (!this.#take(bytes)) return false;
    this.#taken += bytes;
    return true;
  }

  release(): void {
    this.#take(-this.#taken);
    this.#taken = 0;
  }
}
