import { SCRAPE_LIMITS } from "./limits.ts";

/** Memory for answers on their way in, shared by all targets: a hundred that send too much must not be too much. */
export class Budget {
  readonly #byOrg = new Map<string, number>();
  #all = 0;

  /** Room for one answer, given back with `release`. */
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
