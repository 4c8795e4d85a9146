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
  readonly #codes = new Map<string, { token: string; token_id: string; expires_ms: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A code for the token; the token's own oldest one is forgotten when it has too many. */
  issue(token: string, token_id: string): { code: string; expires_ms: number } {
    const now = this.#clock.now();
    for (const [key, { expires_ms }] of this.#codes) if (expires_ms <= now) this.#codes.delete(key);
    const own = [...this.#codes].filter(([, one]) => one.token_id === token_id);
    const [oldest] = own.length < LIMITS.sign_in_codes_per_token ? this.#codes : own;
    const full = own.length >= LIMITS.sign_in_codes_per_token || this.#codes.size >= LIMITS.sign_in_codes;
    if (full && oldest) this.#codes.delete(oldest[0]);
    const code = randomBytes(24).toString("base64url");
    const expires_ms = now + LIMITS.sign_in_code_ms;
    this.#codes.set(hashed(code), { token, token_id, expires_ms });
    return { code, expires_ms };
  }

  /** The token behind a code, this once. */
  redeem(code: string): string {
    const key = hashed(code);
    const found = this.#codes.get(key);
    this.#codes.delete(key);
    if (!found || found.expires_ms <= this.#clock.now()) {
      return unauthorized("this link was used already, or its time is up; `hangar dashboard` makes another");
    }
    return found.token;
  }
}

const hashed = (code: string): string => createHash("sha256").update(code).digest("base64url");
