import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { HOST_LIMITS } from "./limits.ts";
import type { HostService } from "./service.ts";
import type { HostStore } from "./store.ts";
import type { Host } from "./types.ts";

interface WatchParts {
  hosts: HostService;
  store: HostStore;
  notifier: Notifier;
  clock: Clock;
  log: Log;
  /** Handles a lost host; repeated until it succeeds. Absent in a process that only runs machines. */
  onLost?: (host: Host) => Promise<void>;
  /** Called at each check, after that, with the hosts that machines must leave: lost and draining ones. */
  onLeaving?: (hosts: readonly Host[]) => Promise<void>;
}

/** When a heartbeat was first seen, on the monotonic clock. */
interface LastBeat {
  beat: number;
  at: number;
  /** Seen since the last gap in watching. */
  heard: boolean;
}

/**
 * Watches the hosts and, in a control process, decides: a host without a renewal for its lease plus a margin is lost.
 * Time is measured with this process's clock only. Any number of processes may watch: one wins the write, and each
 * handles the loss until that is recorded.
 */
export class HostWatch {
  readonly #parts: WatchParts;
  readonly #seen = new Map<string, LastBeat>();
  readonly #closing = new AbortController();
  readonly #ends: (() => void)[] = [];
  #again = Promise.withResolvers<void>();
  /** After a gap in watching every host gets a whole lease to renew. */
  #blind = true;
  #leases: readonly number[] = [];

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  start(): void {
    const { notifier } = this.#parts;
    this.#ends.push(notifier.listen("hosts", () => this.#again.resolve()));
    void this.#run();
  }

  close(): void {
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
    this.#again.resolve();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.look().catch((error: unknown) => {
        this.#blind = true;
        log.warn({ error }, "the hosts could not be checked");
      });
      const nap = new AbortController();
      const sleep = clock.sleep(this.#pace(), AbortSignal.any([signal, nap.signal])).catch(() => {});
      await Promise.race([sleep, this.#again.promise]);
      nap.abort();
      this.#again = Promise.withResolvers();
    }
  }

  /** Often enough that a loss is noticed soon after the lease. */
  #pace(): number {
    const leases = this.#leases.filter((lease_ms) => lease_ms > 0);
    return Math.min(HOST_LIMITS.watch_ms, ...leases.map((lease_ms) => lease_ms * HOST_LIMITS.watch_part));
  }

  async look(): Promise<void> {
    const { hosts, clock, onLost, onLeaving } = this.#parts;
    const begun = clock.monotonic();
    const all = await hosts.refresh();
    const now = clock.monotonic();
    this.#leases = all.map(({ lease_ms }) => lease_ms);
    for (const host of all) {
      const seen = this.#seen.get(host.id);
      const moved = seen?.beat !== host.beat;
      if (this.#blind || moved) this.#seen.set(host.id, { beat: host.beat, at: now, heard: moved });
    }
    this.#blind = false;
    hosts.setWatched(
      new Map(
        all.map((host) => [
          host.id,
          { silent: this.#isSilent(host, now), lease_ends_at: this.#leaseEndsAt(host, now) },
        ]),
      ),
    );
    if (!onLost) return;
    for (const host of all) await this.#judge(host, begun, onLost);
    // Whether nothing runs there any more.
    const lost = ({ state, lease_ms, handled, epoch }: Host): boolean =>
      state === "failed" && lease_ms > 0 && handled >= epoch;
    const leaving = all.filter((host) => lost(host) || (host.state === "ok" && host.draining));
    if (leaving.length > 0) await onLeaving?.(leaving);
  }

  /** Whether it must have fenced itself by now, or has not renewed since the last gap. */
  #isSilent({ id, lease_ms }: Host, now: number): boolean {
    const seen = this.#seen.get(id);
    if (lease_ms === 0 || !seen) return false;
    return !seen.heard || now - seen.at >= lease_ms * (1 - HOST_LIMITS.fence_part);
  }

  #leaseEndsAt({ id, lease_ms }: Host, now: number): number | undefined {
    const left = (this.#seen.get(id)?.at ?? now) + lostAfter(lease_ms) - now;
    return left > 0 ? this.#parts.clock.now() + left : undefined;
  }

  async #judge(host: Host, now: number, onLost: (host: Host) => Promise<void>): Promise<void> {
    const { store, hosts, notifier, log } = this.#parts;
    const { id, beat, lease_ms, state } = host;
    const silent = now - (this.#seen.get(id)?.at ?? now);
    if (lease_ms === 0 || silent < lostAfter(lease_ms)) return;
    if (state === "ok" && (await store.lose(id, beat))) {
      log.warn({ host: id, silent_ms: Math.round(silent) }, "a host is lost");
      notifier.send("hosts", id);
    }
    const lost = state === "ok" ? (await hosts.refresh()).find((one) => one.id === id) : host;
    if (lost?.state !== "failed" || lost.beat !== beat || lost.handled >= lost.epoch) return;
    await onLost(lost);
    await store.handled(id, lost.epoch);
  }
}

/** Time without a renewal after which a host is lost. Zero without a lease, which cannot be lost. */
const lostAfter = (lease_ms: number): number => lease_ms * (1 + HOST_LIMITS.margin_part);
