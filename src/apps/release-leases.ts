/**
 * Fails running releases whose deployer has stopped renewing them: it was killed, or its box was lost. A lease's
 * remaining time is measured on the monotonic clock since the renewal was first observed, because the process that accepted
 * the renewal may have another wall clock (ADR 17). So a release ends at most one lease and two polls after its deployer.
 */
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import type { LeasedRelease, ReleaseStore } from "./release-store.ts";

/** While no release is known to run: for one that was begun through another process, which is lost. */
const IDLE_MS = 10 * 60_000;

interface Parts {
  store: Pick<ReleaseStore, "leased" | "putStatus">;
  clock: Clock;
  log: Log;
}

interface Seen {
  renewed_at: number;
  /** On the monotonic clock. */
  seen_at: number;
}

export class ReleaseLeases {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  #seen = new Map<string, Seen>();
  #woken = new AbortController();
  #running: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** A release with a lease was begun. */
  wake(): void {
    this.#woken.abort();
  }

  /** One look at all running releases. */
  async look(): Promise<void> {
    const { store, clock } = this.#parts;
    const seen = new Map<string, Seen>();
    for (const release of await store.leased()) {
      const key = `${release.app_id} ${release.version}`;
      const before = this.#seen.get(key);
      const now = clock.monotonic();
      const current =
        before?.renewed_at === release.updated_at ? before : { renewed_at: release.updated_at, seen_at: now };
      if (now - current.seen_at < release.lease_ms) seen.set(key, current);
      else await this.#fail(release);
    }
    this.#seen = seen;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#woken = new AbortController();
      await this.look().catch((error: unknown) => log.warn({ error }, "leases of releases could not be looked at"));
      const ms = this.#seen.size > 0 ? LIMITS.release_leases_ms : IDLE_MS;
      await clock.sleep(ms, AbortSignal.any([signal, this.#woken.signal])).catch(() => {});
    }
  }

  async #fail({ app_id, version, updated_at, lease_ms }: LeasedRelease): Promise<void> {
    const { store, clock } = this.#parts;
    const failure = `interrupted: nothing was heard from the deployer for ${lease_ms / 1000} s (was it killed?); deploy again, or roll back`;
    await store.putStatus(app_id, version, { status: "failed", failure }, clock.now(), updated_at);
  }
}
