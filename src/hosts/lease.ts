import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import { HOST_LIMITS } from "./limits.ts";
import type { Arrival, HostStore } from "./store.ts";
import type { Tenure } from "./types.ts";

interface LeaseParts {
  host_id: string;
  node_id: string;
  lease_ms: number;
  arrival(): Omit<Arrival, "lease_ms" | "now">;
  store: Pick<HostStore, "find" | "take" | "renew" | "leave">;
  clock: Clock;
  log: Log;
  /** Resolves when no movable machine of this host runs. */
  fence(): Promise<void>;
  /** The lease was acquired, first or again: removes machines that moved away, then the rest may continue … */
  clear(): Promise<void>;
  /** … and operations are read again. */
  open(): Promise<void>;
  /** Called after every renewal with the time until fencing begins, and the time that fencing may take. */
  onRenewed(left_ms: number, fence_ms: number): void;
  /** Called after every acquisition. */
  onTaken(): void;
}

/** Another process holds the host. */
export class HostTakenError extends Error {
  override readonly name = "HostTakenError";
}

/**
 * Keeps one host's lease. Everything is counted on the clock that never jumps, from before a renewal was sent:
 *
 *   sent                            ¾ lease          lease                    1¼ lease
 *   ├─ the database sees the beat ───┤ fence begins ──┤ nothing runs any more ──┤ others may take the host
 *
 * Others see the beat after it was sent and wait longer than we do, so what they begin never meets what we still
 * have. A renewal that comes late opens again; one that is refused means that somebody took the host, and then it is
 * taken back as a newcomer would: first what is no longer ours goes, then the rest runs on.
 */
export class HostLease {
  readonly #parts: LeaseParts;
  readonly #timers: Timers;
  readonly #fence_ms: number;
  #epoch = 0;
  /** When the lease ends unless it is renewed, on the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY;
  #state: "open" | "fenced" | "closed" = "fenced";
  /** Operations were read since the host was opened, and none was refused for lack of a lease since then. */
  #looked = false;
  /** Fencing and opening, one at a time. */
  #mutex: Promise<void> = Promise.resolve();

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
    this.#fence_ms = parts.lease_ms * HOST_LIMITS.fence_part;
  }

  /** Acquires the host, or throws the reason. Running machines are reconciled before this resolves. */
  async start(): Promise<void> {
    if (!(await this.#take())) {
      const { host_id, store } = this.#parts;
      const host = await store.find(host_id);
      throw new HostTakenError(
        host?.held
          ? `an operator holds host ${host_id} back; \`hangar hosts recover ${host_id}\` lets it come`
          : `host ${host_id} belongs to another data dir (node ${host?.node_id ?? "unknown"}): start this process ` +
              "with --role host, or with --role control",
      );
    }
    await this.#mutex;
  }

  /** Whether operations may begin now. */
  get valid(): boolean {
    return this.#state === "open" && this.#left() > 0;
  }

  /** The current tenure. */
  get tenure(): Tenure {
    const { host_id: id, node_id } = this.#parts;
    return { id, node_id, epoch: this.#epoch };
  }

  /**
   * Extends the lease by `grace_ms` for a restart: until then the host does not count as lost, and machines keep
   * running. Without a valid lease it does nothing.
   */
  async leave(grace_ms: number): Promise<void> {
    const { store, clock, lease_ms, log, onRenewed } = this.#parts;
    const holds = this.valid && grace_ms > lease_ms;
    this.close();
    if (!holds) return;
    const sent = clock.monotonic();
    try {
      const left = await Promise.race([store.leave(this.tenure, grace_ms, clock.now()), clock.sleep(lease_ms / 4)]);
      const fence_ms = grace_ms * HOST_LIMITS.fence_part;
      if (left) onRenewed(sent + grace_ms - fence_ms - clock.monotonic(), fence_ms);
    } catch (error) {
      log.warn({ error, host: this.#parts.host_id }, "the host's lease could not be prolonged for the restart");
    }
  }

  /** Machines keep running: a restart in time adopts them; otherwise the host counts as lost. */
  close(): void {
    this.#state = "closed";
    this.#timers.close();
  }

  /** Time until fencing must begin. */
  #left(): number {
    return this.#until - this.#fence_ms - this.#parts.clock.monotonic();
  }

  #later(beats_per_lease: number = HOST_LIMITS.beats_per_lease): void {
    this.#timers.set("beat", this.#parts.lease_ms / beats_per_lease, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    const { store, clock, log, host_id, node_id } = this.#parts;
    const sent = clock.monotonic();
    let pace: number = HOST_LIMITS.beats_per_lease;
    try {
      const renewed = await store.renew({ id: host_id, node_id, epoch: this.#epoch }, clock.now());
      if (renewed) this.#renewed(sent);
      else await this.#lost();
    } catch (error) {
      log.warn({ error, host: host_id }, "the host's lease could not be renewed");
      pace = HOST_LIMITS.failed_beats_per_lease;
    }
    if (this.#state !== "closed") this.#later(pace);
  }

  #renewed(sent: number): void {
    // The renewal was late: operations were refused meanwhile, and the guard may have fenced.
    if (this.#left() <= 0) {
      this.#looked = false;
      if (this.#state === "open") this.#state = "fenced";
    }
    this.#until = sent + this.#parts.lease_ms;
    this.#parts.onRenewed(this.#left(), this.#fence_ms);
    this.#timers.set("fence", this.#left(), () => void this.#fence("its lease was not renewed in time"));
    // Not awaited: opening may take longer than the lease, and renewals continue.
    if (!this.#looked) void this.#open();
  }

  async #lost(): Promise<void> {
    await this.#fence("another process took the lease");
    await this.#take();
  }

  async #take(): Promise<boolean> {
    const { store, clock, arrival, lease_ms, host_id, node_id, log } = this.#parts;
    const sent = clock.monotonic();
    const host = await store.find(host_id);
    if (!host) return false;
    const tenure = { id: host_id, node_id, epoch: host.epoch };
    const epoch = await store.take(tenure, host.epoch, { ...arrival(), lease_ms, now: clock.now() });
    if (epoch === undefined) return false;
    this.#epoch = epoch;
    log.info({ host: host_id, epoch }, "the host is taken");
    this.#renewed(sent);
    this.#later();
    this.#parts.onTaken();
    return true;
  }

  async #fence(why: string): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "fenced";
    this.#looked = false;
    this.#parts.log.warn({ host: this.#parts.host_id, why }, "the host fences itself");
    await this.#inTurn(() => this.#parts.fence());
  }

  async #open(): Promise<void> {
    await this.#inTurn(async () => {
      // Done meanwhile, or it took so long that the lease has expired again.
      if (this.#looked || this.#state === "closed" || this.#left() <= 0) return;
      // Failures are retried at the next renewal; nothing begins before it was cleared.
      if (this.#state === "fenced") {
        await this.#parts.clear();
        if (this.#left() <= 0) return await this.#parts.fence();
        this.#state = "open";
      }
      this.#looked = true;
      await this.#parts.open().catch((error: unknown) => {
        this.#looked = false;
        throw error;
      });
    });
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const { log, host_id } = this.#parts;
    const turn = this.#mutex.then(work).catch((error: unknown) => {
      log.error({ error, host: host_id }, "fencing or opening a host failed");
    });
    this.#mutex = turn;
    await turn;
  }
}
