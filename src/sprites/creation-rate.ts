import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { SPRITE_LIMITS } from "./limits.ts";

const WINDOW_MS = 60_000;

/** Creations of each organization within the last minute, in this process. */
export class CreationRate {
  readonly #clock: Clock;
  readonly #made = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one creation; fails when there were enough. */
  acquire(org_id: string): void {
    const limit = SPRITE_LIMITS.sprite_creations_per_minute;
    const now = this.#clock.monotonic();
    const recent = (this.#made.get(org_id) ?? []).filter((at) => at > now - WINDOW_MS);
    this.#made.set(org_id, recent);
    const [oldest] = recent;
    if (recent.length < limit || oldest === undefined) {
      recent.push(now);
      return;
    }
    const retry_after_s = Math.ceil((oldest + WINDOW_MS - now) / 1000);
    fail("sprite_creation_rate_limited", `an organization creates ${limit} sprites a minute`, {
      retry_after_s,
      hint: "limit sprite_creations_per_minute",
      facts: { limit, window_seconds: WINDOW_MS / 1000, retry_after_seconds: retry_after_s, upgrade_available: false },
      headers: {
        "x-ratelimit-limit": String(limit),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": String(Math.floor(this.#clock.now() / 1000) + retry_after_s),
      },
    });
  }
}
