import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { unauthorized } from "./tokens.ts";

/**
 * One-time codes for a token: a sign-in link opens the dashboard without pasting the token, and is worthless in a
 * history afterwards. Codes live in memory for minutes; only hashes are kept, so that comparison time reveals nothing.
 */
export class SignInCodes {
  readonly #clock: Clock;
  readonly #codes = new Map<string, { token: string; token_id: string; expires_ms: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Creates a code for the token; past the limit the token's oldest one becomes invalid. */
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

  /** Redeems a code for its token, once. */
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
