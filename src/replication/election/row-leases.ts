/**
 * The lease as a row that is changed by compare-and-swap. The row contains no time, and clocks of machines are never
 * compared: a lease has expired when the candidate itself has seen the row unchanged for the lease's duration, by its
 * own monotonic clock. So a clock that jumps, or differs, cannot give the lease to two nodes. The price: a process
 * that has just started waits that long once before it can take the lease of a lost node.
 */
import type { Clock } from "#core/clock.ts";
import { type InSync, inSyncAfterHandOff, mayStand, newerInSync, readInSync, type StoredInSync } from "./in-sync.ts";
import type { LeaseRow, LeaseRows } from "./lease-rows.ts";
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

const NONE: LeaseRow = {
  revision: 0,
  term: 0,
  served_term: 0,
  node: null,
  url: "",
  reserved_for: null,
  in_sync: null,
  lasts_ms: 0,
};

const asText = (in_sync: StoredInSync | null): string | null => in_sync && JSON.stringify(in_sync);

export class RowLeases implements LeaseStore {
  readonly #rows: LeaseRows;
  readonly #clock: Clock;
  /** The last seen row, and when it was first seen. */
  #seen = { revision: 0, at_ms: 0 };

  constructor(rows: LeaseRows, clock: Clock) {
    this.#rows = rows;
    this.#clock = clock;
  }

  async acquire(
    { node, url, term: heard, complete_term }: Candidate,
    ttl_ms: number,
    force = false,
  ): Promise<Lease | undefined> {
    const row = await this.#look();
    const live = !this.#ranOut(row);
    const taken = live && row.node !== null && row.node !== node;
    const reserved = live && row.reserved_for !== null && row.reserved_for !== node;
    const lacks = complete_term < row.served_term || !mayStand(readInSync(row.in_sync), node);
    if (taken || reserved || (lacks && !force)) return undefined;
    const term = Math.max(row.term, heard) + 1;
    const next = { ...row, term, node, url, reserved_for: null, lasts_ms: ttl_ms };
    return (await this.#change(row, next)) ? { node, url, term } : undefined;
  }

  async renew(lease: Lease, ttl_ms: number, said?: InSync): Promise<boolean> {
    return await this.#changeMine(lease, (row) => {
      if (this.#ranOut(row)) return undefined;
      const in_sync = asText(newerInSync(readInSync(row.in_sync), lease.term, said));
      return { ...row, served_term: lease.term, in_sync, lasts_ms: ttl_ms };
    });
  }

  async release(lease: Lease, successor?: { node: string; for_ms: number }): Promise<void> {
    const reserved_for = successor?.node ?? null;
    const lasts_ms = successor?.for_ms ?? 0;
    await this.#changeMine(lease, (row) => {
      const stored = readInSync(row.in_sync);
      const in_sync = asText(successor ? inSyncAfterHandOff(stored, lease.node, successor.node) : stored);
      return { ...row, node: null, url: "", reserved_for, in_sync, lasts_ms };
    });
  }

  async holder(): Promise<Lease | undefined> {
    const row = await this.#look();
    if (row.node === null || this.#ranOut(row)) return undefined;
    return { node: row.node, url: row.url, term: row.term };
  }

  async close(): Promise<void> {
    await this.#rows.close();
  }

  async #look(): Promise<LeaseRow> {
    const row = (await this.#rows.read()) ?? NONE;
    // Measured from the response, not from the request: it may have been written in between.
    if (row.revision !== this.#seen.revision) this.#seen = { revision: row.revision, at_ms: this.#clock.monotonic() };
    return row;
  }

  #ranOut({ lasts_ms }: LeaseRow): boolean {
    return this.#clock.monotonic() - this.#seen.at_ms >= lasts_ms;
  }

  /**
   * Changes the row of a lease while it is held, and returns whether it did. A concurrent change does not mean that the
   * lease is lost: its holder may renew twice, or renew while releasing.
   */
  async #changeMine(lease: Lease, change: (row: LeaseRow) => LeaseRow | undefined): Promise<boolean> {
    for (;;) {
      const row = await this.#look();
      const next = row.node === lease.node && row.term === lease.term ? change(row) : undefined;
      if (!next) return false;
      if (await this.#change(row, next)) return true;
    }
  }

  async #change(row: LeaseRow, next: LeaseRow): Promise<boolean> {
    const revision = row.revision + 1;
    if (!(await this.#rows.swap(row.revision, { ...next, revision }))) return false;
    this.#seen = { revision, at_ms: this.#clock.monotonic() };
    return true;
  }
}
