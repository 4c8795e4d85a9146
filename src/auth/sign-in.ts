import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { unauthorized } from "./tokens.ts";

/**
 * Codes that stand for a token once: a link with one opens the dashboard without the token being pasted, and
 * is worth nothing in a terminal's or a browser's history afterwards. They live in memory, for minutes; only
 * their hashes are kept, so that what is compared tells nothing by how long it takes.
 */
export class SignInCodes {
  readonly #clock: Clock;
  readonly #codes = new Map<string, { token: string; expires_ms: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A code for the token; the oldest one is forgotten when there are too many. */
  issue(token: string): { code: string; expires_ms: number } {
    const code = randomBytes(24).toString("base64url");
    const expires_ms = this.#clock.now() + LIMITS.sign_in_code_ms;
    this.#codes.set(hashed(code), { token, expires_ms });
    const [oldest] = this.#codes.keys();
    if (this.#codes.size > LIMITS.sign_in_codes && oldest !== undefined) this.#codes.delete(oldest);
    return { code, expires_ms };
  }

  /** The token behind a code, this once. */
  redeem(code: string): string {
    const key = hashed(code);
    const found = this.#codes.get(key);
    this.#codes.delete(key);
    if (!found || found.expires_ms <= this.#clock.now()) {
      return unauthorized("this link was used already, or its time is up; `npx hangar dashboard` makes another");
    }
    return found.token;
  }
}

const hashed = (code: string): string => createHash("sha256").update(code).digest("base64url");
