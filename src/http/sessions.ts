import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";

/** Why a session ended: the error that a new request would get. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

interface Session {
  /** Repeats the checks of the start. Fails as a request would. */
  check(): Promise<unknown>;
  end: AbortController;
}

/**
 * Open event streams, followed logs, terminals, uploads and downloads of any length. Their access is checked again
 * while they last, so that a session ends soon after its token was revoked or expired, or its resource was removed, by
 * any process.
 */
export class Sessions {
  readonly #clock: Clock;
  readonly #open = new Set<Session>();
  #watching = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `signal` is aborted with `SessionEnded` when access is lost; `close` is called at the end. */
  open(check: () => Promise<unknown>): { signal: AbortSignal; close(): void } {
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
      // A failing store does not mean that the caller has lost access.
      if (!(thrown instanceof ApiError) || thrown.http >= 500) return;
      this.#open.delete(session);
      session.end.abort(new SessionEnded(thrown.message));
    }
  }
}
