import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";

/** Why a session was ended: what its caller would be told if it asked now. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

interface Session {
  /** Asks again what was asked when it began. Fails as a request would. */
  check(): Promise<void>;
  end: AbortController;
}

/**
 * Event streams, followed logs and terminals that are open. Who they are for was asked when they began; that is asked
 * again as long as they last, so that a session ends soon after its token was revoked or has expired, or what it is
 * about is no longer the caller's, whichever process of the platform that was told to.
 */
export class Sessions {
  readonly #clock: Clock;
  readonly #open = new Set<Session>();
  #watching = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `signal` is aborted with `SessionEnded` when the caller may no longer; `close` is called when it is over. */
  open(check: () => Promise<void>): { signal: AbortSignal; close(): void } {
    const session: Session = { check, end: new AbortController() };
    this.#open.add(session);
    if (!this.#watching) void this.#watch();
    return { signal: session.end.signal, close: () => void this.#open.delete(session) };
  }

  async #watch(): Promise<void> {
    this.#watching = true;
    while (this.#open.size > 0) {
      await this.#clock.sleep(LIMITS.session_check_ms);
      await Promise.all([...this.#open].map((session) => this.#look(session)));
    }
    this.#watching = false;
  }

  async #look(session: Session): Promise<void> {
    try {
      await session.check();
    } catch (thrown) {
      // A store that cannot be read says nothing about the caller.
      if (!(thrown instanceof ApiError) || thrown.http >= 500) return;
      this.#open.delete(session);
      session.end.abort(new SessionEnded(thrown.message));
    }
  }
}
