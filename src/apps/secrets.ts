import { createHmac } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { fail, type Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Sealer } from "#core/sealer.ts";
import type { AppStore } from "./store.ts";
import type { Secret } from "./types.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The rules about an app's secrets. Values are revealed only to machines of the app. */
export class SecretService {
  readonly #parts: { store: AppStore; sealer: Sealer; clock: Clock };

  constructor(parts: { store: AppStore; sealer: Sealer; clock: Clock }) {
    this.#parts = parts;
  }

  async list(app_id: string): Promise<Secret[]> {
    return await this.#parts.store.secrets(app_id);
  }

  async get(app_id: string, name: string): Promise<Secret> {
    return (
      (await this.#parts.store.findSecret(app_id, name)) ??
      fail("not_found", `the app has no secret ${JSON.stringify(name)}`)
    );
  }

  /** Sets secrets with a value and removes those with null, atomically; returns the new version. */
  async change(app_id: string, values: Record<string, string | null>): Promise<number> {
    refuseBad(values);
    const names = Object.keys(values);
    const put = names.flatMap((name) => {
      const value = values[name];
      return typeof value === "string" ? [this.#seal(app_id, name, value)] : [];
    });
    const remove = names.filter((name) => values[name] === null);
    const version = await this.#parts.store.changeSecrets(app_id, put, remove, LIMITS.secrets_per_app);
    if (version === "no_app") fail("not_found", "the app was deleted in the meantime");
    if (version === "limit")
      fail("limit_reached", `an app has at most ${LIMITS.secrets_per_app} secrets (limit secrets_per_app)`);
    return version;
  }

  /** All values, for a booting machine. */
  async reveal(app_id: string): Promise<Record<string, string>> {
    const secrets = await this.#parts.store.secrets(app_id);
    return Object.fromEntries(
      secrets.map(({ name, sealed }) => [name, this.#parts.sealer.open(place(app_id, name), sealed).toString()]),
    );
  }

  #seal(app_id: string, name: string, value: string): Secret {
    const { sealer, clock } = this.#parts;
    const now = clock.now();
    // Keyed, so that short values cannot be found by brute force.
    const digest = createHmac("sha256", sealer.derive("secret-digest"))
      .update(`${app_id}:${name}:${value}`)
      .digest("hex")
      .slice(0, 16);
    return { name, sealed: sealer.seal(place(app_id, name), value), digest, created_at: now, updated_at: now };
  }
}

const place = (app_id: string, name: string): string => `secret:${app_id}:${name}`;

function refuseBad(values: Record<string, string | null>): void {
  const details: Problem[] = [];
  for (const [name, value] of Object.entries(values)) {
    const path = `body.values.${name.slice(0, LIMITS.secret_name_chars)}`;
    if (!NAME.test(name) || name.length > LIMITS.secret_name_chars) {
      details.push({
        path,
        problem: "is not a secret's name",
        allowed: `letters, digits and _, not beginning with a digit, at most ${LIMITS.secret_name_chars}`,
      });
    }
    if (value !== null && Buffer.byteLength(value) > LIMITS.secret_value_bytes) {
      details.push({
        path,
        problem: "is too long",
        allowed: `at most ${LIMITS.secret_value_bytes} bytes (limit secret_value_bytes)`,
      });
    }
  }
  const [first] = details;
  if (first)
    fail("invalid_request", `${first.path} ${first.problem}`, { details: details.slice(0, LIMITS.problems_listed) });
}
