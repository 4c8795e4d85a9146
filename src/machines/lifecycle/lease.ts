import { assert } from "#core/assert.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { sameSecret } from "#core/same-secret.ts";
import { Timers } from "#core/timers.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { MachineStore } from "../store.ts";
import type { Lease, Machine } from "../types.ts";
import type { MachineTransaction } from "./transaction.ts";
import { type MachineUpdate, type MachineWriter, topics } from "./writer.ts";

interface LeaseParts {
  store: MachineStore;
  writer: MachineWriter;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  /** Other processes grant leases too, and their wall clocks may be wrong. */
  shared?: boolean;
}

export interface AcquireLeaseInput {
  owner: string;
  description: string;
  ttl_s: number;
  /** Nonce of the lease to refresh. */
  nonce?: string | undefined;
  /** How long to wait for the lease. */
  wait_s: number;
}

/** When a lease ends, on the monotonic clock, and which lease that is. */
interface End {
  expires_at: number;
  nonce: string;
  at: number;
}

/**
 * Grants leases: one holder at a time, identified by an unguessable nonce. The nonce is a fencing token: it is compared
 * with the lease that was read, and the write that follows is guarded by the revision read with it. If anyone acquired,
 * released or refreshed the lease in between, the write fails, however late the request arrives.
 *
 * Remaining time is measured on the monotonic clock. After a restart, when that clock has begun anew, the stored wall
 * time is used, limited to one ttl. With several processes it is never used: a lease granted elsewhere lasts one ttl
 * from when it is first seen (ADR 17), because its grantor's clock may be hours behind. Expired leases are removed from
 * the row; otherwise every process that first sees one would wait for it again.
 */
export class Leases {
  readonly #parts: LeaseParts;
  /**
   * Ends on the monotonic clock, by machine. Filled when a lease is first seen, so an entry may be missing at any time.
   * A refresh keeps the nonce and may come through another process, so `expires_at` identifies the lease.
   */
  readonly #ends = new Map<string, End>();

  readonly #timers: Timers;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  close(): void {
    this.#timers.close();
  }

  /** Returns the machine's lease if it has not expired. */
  live(machine: Pick<Machine, "id" | "lease">): (Lease & { left_ms: number }) | undefined {
    const { lease, id } = machine;
    if (!lease) {
      this.#ends.delete(id);
      return undefined;
    }
    const { clock, shared } = this.#parts;
    let end = this.#ends.get(id);
    if (end?.nonce !== lease.nonce || end.expires_at !== lease.expires_at) {
      const left = shared ? lease.ttl_ms : Math.min(lease.ttl_ms, Math.max(0, lease.expires_at - clock.now()));
      end = { expires_at: lease.expires_at, nonce: lease.nonce, at: clock.monotonic() + left };
      this.#endAt(id, end);
    }
    const left_ms = end.at - clock.monotonic();
    return left_ms > 0 ? { ...lease, left_ms } : undefined;
  }

  /** Refuses a change of the machine by anyone but the holder of its lease. */
  check(machine: Machine, nonce: string | undefined): void {
    const lease = this.live(machine);
    if (!lease) {
      if (nonce === undefined) return;
      fail("lease_lost", `machine ID ${machine.id}: the lease with this nonce is over, nothing was changed`, {
        hint: "take a new lease, or send the request without a nonce",
      });
    }
    if (nonce === undefined || !sameSecret(nonce, lease.nonce)) this.#held(machine, lease);
  }

  /** Puts a new lease into the transaction, replacing any other. */
  grant(
    transaction: MachineTransaction,
    { owner, description, ttl_s }: Pick<AcquireLeaseInput, "owner" | "description" | "ttl_s">,
    ids: Ids,
  ): Lease {
    return this.#put(transaction, { nonce: ids.hex(32), owner, description, ttl_s });
  }

  /** Acquires the lease, refreshes it if the nonce matches, or waits for it. */
  async acquire(
    id: string,
    input: AcquireLeaseInput,
    ids: Ids,
    signal: AbortSignal,
  ): Promise<{ machine: Machine; lease: Lease }> {
    const { clock, bus } = this.#parts;
    const until = clock.monotonic() + Math.min(input.wait_s, MACHINE_LIMITS.lease_wait_max_s) * 1000;
    for (;;) {
      // Subscribes before the attempt, so that a release in between is not missed.
      const woken = Promise.withResolvers<void>();
      const end = bus.subscribe(topics.machine(id), () => woken.resolve());
      try {
        return await this.#take(id, input, ids);
      } catch (thrown) {
        const left = until - clock.monotonic();
        if (!(thrown instanceof ApiError) || thrown.code !== "lease_held" || left <= 0 || signal.aborted) throw thrown;
        const machine = await this.#parts.store.find(id);
        const lease = machine && this.live(machine);
        await this.#pause(Math.min(left, lease?.left_ms ?? 0), woken.promise, signal);
      } finally {
        end();
      }
    }
  }

  async read(id: string): Promise<{ machine: Machine; lease: Lease }> {
    const machine = await this.#find(id);
    return { machine, lease: this.live(machine) ?? none(id) };
  }

  async release(id: string, nonce: string): Promise<void> {
    await this.#parts.writer.change(id, (transaction) => {
      const lease = this.live(transaction.machine) ?? none(id);
      if (!sameSecret(nonce, lease.nonce)) this.#held(transaction.machine, lease);
      transaction.set({ lease: null });
      return true;
    });
    this.#ends.delete(id);
  }

  async #take(id: string, input: AcquireLeaseInput, ids: Ids): Promise<{ machine: Machine; lease: Lease }> {
    let granted: Lease | undefined;
    const fresh = ids.hex(32);
    const machine = await this.#parts.writer.change(id, (transaction) => {
      if (transaction.machine.state === "destroyed") fail("not_found", `machine not found: ${id} is destroyed`);
      const lease = this.live(transaction.machine);
      const own = input.nonce !== undefined && lease !== undefined && sameSecret(input.nonce, lease.nonce);
      if (lease && !own) this.#held(transaction.machine, lease);
      if (!lease && input.nonce !== undefined) this.check(transaction.machine, input.nonce);
      granted = this.#put(transaction, {
        nonce: lease?.nonce ?? fresh,
        owner: input.owner,
        description: input.description || (lease?.description ?? ""),
        ttl_s: input.ttl_s,
      });
      return true;
    });
    assert(granted, "a lease was put into the draft");
    return { machine, lease: granted };
  }

  #put(
    transaction: MachineTransaction,
    { nonce, owner, description, ttl_s }: Omit<AcquireLeaseInput, "wait_s"> & { nonce: string },
  ): Lease {
    const { clock } = this.#parts;
    const ttl_ms = ttl_s * 1000;
    const lease: Lease = { nonce, owner, description, expires_at: clock.now() + ttl_ms, ttl_ms };
    transaction.set({ lease });
    // If this is never written, the entry belongs to no lease, and `live` corrects it.
    this.#endAt(transaction.machine.id, { expires_at: lease.expires_at, nonce, at: clock.monotonic() + ttl_ms });
    return lease;
  }

  #endAt(id: string, end: End): void {
    const { clock, shared } = this.#parts;
    this.#ends.set(id, end);
    if (shared) this.#timers.set(id, end.at - clock.monotonic(), () => void this.#clear(id, end.nonce));
  }

  /** Removes an expired lease from the row; one that was refreshed elsewhere meanwhile stays. */
  async #clear(id: string, nonce: string): Promise<void> {
    const clear = this.#parts.writer.change(id, (transaction) => {
      const { machine } = transaction;
      if (!machine.lease || !sameSecret(nonce, machine.lease.nonce) || this.live(machine)) return false;
      transaction.set({ lease: null });
      return true;
    });
    // The next reader measures it again and retries.
    await clear.catch(() => this.#ends.delete(id));
  }

  async #pause(ms: number, woken: Promise<void>, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, signal]);
    await Promise.race([woken, this.#parts.clock.sleep(ms, stop).catch(() => {})]);
    over.abort();
  }

  #held({ id }: Machine, lease: Lease & { left_ms: number }): never {
    const seconds_left = Math.ceil(lease.left_ms / 1000);
    const expires_at = Math.floor((this.#parts.clock.now() + lease.left_ms) / 1000);
    const about = lease.description === "" ? "" : ` (${lease.description})`;
    fail(
      "lease_held",
      `machine ID ${id} lease currently held by ${lease.owner}${about}, expires at ${new Date(expires_at * 1000).toISOString()}, in ${seconds_left} s`,
      {
        retry_after_s: Math.max(1, seconds_left),
        facts: { holder: lease.owner, description: lease.description, expires_at, seconds_left },
        hint: "send the nonce in svc-machine-lease-nonce, or queue for the lease with POST …/lease?wait=30",
      },
    );
  }

  async #find(id: string): Promise<Machine> {
    return (await this.#parts.store.find(id)) ?? fail("not_found", `machine not found: ${id}`);
  }
}

function none(id: string): never {
  fail("not_found", `machine ID ${id} lease not found`);
}
