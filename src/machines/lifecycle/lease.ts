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
  /** Other processes give leases too, and their wall clocks may say anything. */
  shared?: boolean;
}

export interface AcquireLeaseInput {
  owner: string;
  description: string;
  ttl_s: number;
  /** Of the lease to be refreshed, when it is one. */
  nonce?: string | undefined;
  /** How long to queue for it. */
  wait_s: number;
}

/** When a lease is over, on the clock that never jumps, and which one that is. */
interface End {
  expires_at: number;
  nonce: string;
  at: number;
}

/**
 * Leases: one holder at a time, told apart by a nonce that nobody can guess.
 *
 * The nonce is a fencing token. It is compared with the lease that was read, and the write that follows is
 * guarded by the revision that was read with it: had anyone taken, released or refreshed the lease in
 * between, the write would not happen. How late the request comes makes no difference.
 *
 * How long a lease still lasts is counted on the clock that does not jump. Only after a restart, when that
 * clock has begun anew, the stored wall time is asked, and then at most a whole ttl is believed. Among several
 * processes it is never asked: a lease that this one has not given itself lasts a whole ttl from when it is first
 * seen (ADR 17), since it may have been given a moment ago by a process whose clock is hours behind. What is over is
 * taken out of the row, or every process that sees it for the first time would wait for its end once more.
 */
export class Leases {
  readonly #parts: LeaseParts;
  /**
   * Ends on the monotonic clock, by machine. Filled at first sight, so it may be empty at any time. A refresh keeps the
   * nonce and may come by way of another process, so `expires_at` tells which lease the end is of.
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

  /** The machine's lease while it lasts. */
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

  /** Puts a new lease into the draft, whoever held it before. */
  grant(
    transaction: MachineTransaction,
    { owner, description, ttl_s }: Pick<AcquireLeaseInput, "owner" | "description" | "ttl_s">,
    ids: Ids,
  ): Lease {
    return this.#put(transaction, { nonce: ids.hex(32), owner, description, ttl_s });
  }

  /** Takes the lease, refreshes it when the nonce is its own, or queues for it. */
  async acquire(
    id: string,
    input: AcquireLeaseInput,
    ids: Ids,
    signal: AbortSignal,
  ): Promise<{ machine: Machine; lease: Lease }> {
    const { clock, bus } = this.#parts;
    const until = clock.monotonic() + Math.min(input.wait_s, MACHINE_LIMITS.lease_wait_max_s) * 1000;
    for (;;) {
      // Listening begins before the try, so that a release in between is heard.
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
    // If this is never written the entry is of a lease that nobody has, and `live` puts it right.
    this.#endAt(transaction.machine.id, { expires_at: lease.expires_at, nonce, at: clock.monotonic() + ttl_ms });
    return lease;
  }

  #endAt(id: string, end: End): void {
    const { clock, shared } = this.#parts;
    this.#ends.set(id, end);
    if (shared) this.#timers.set(id, end.at - clock.monotonic(), () => void this.#clear(id, end.nonce));
  }

  /** Takes a lease that is over out of the row; one that was refreshed elsewhere meanwhile stays. */
  async #clear(id: string, nonce: string): Promise<void> {
    const clear = this.#parts.writer.change(id, (transaction) => {
      const { machine } = transaction;
      if (!machine.lease || !sameSecret(nonce, machine.lease.nonce) || this.live(machine)) return false;
      transaction.set({ lease: null });
      return true;
    });
    // Whoever sees it next counts once more and tries again.
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
