import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Sealer } from "#core/sealer.ts";
import { FLY_LIMITS } from "../limits.ts";
import { ALGORITHMS, type Algorithm } from "./algorithms.ts";
import type { SecretKey, SecretKeyStore } from "./store.ts";

interface Parts {
  store: SecretKeyStore;
  sealer: Sealer;
  clock: Clock;
}

/** A key and its algorithm, for one operation. */
interface Opened {
  key: Buffer;
  name: string;
  type: string;
  algorithm: Algorithm;
}

const place = (app_id: string, name: string): string => `secret-key:${app_id}:${name}`;

/** The rules about an app's secret keys. They are used in the platform, and never leave it. */
export class SecretKeyService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  list = (app_id: string): Promise<SecretKey[]> => this.#parts.store.list(app_id);

  async get(app_id: string, name: string): Promise<SecretKey> {
    return (
      (await this.#parts.store.find(app_id, name)) ??
      fail("not_found", `the app has no secret key ${JSON.stringify(name)}`)
    );
  }

  async generate(app_id: string, name: string, type: string): Promise<SecretKey> {
    return await this.#put(app_id, name, { type, key: algorithmOf(type).generate() });
  }

  async set(app_id: string, name: string, type: string, key: Buffer): Promise<SecretKey> {
    const allowed = algorithmOf(type).problem(key);
    if (allowed !== undefined)
      fail("invalid_request", `body.value is not a key of type ${type}: it must be ${allowed}`, {
        details: [{ path: "body.value", problem: `is not a key of type ${type}`, allowed }],
      });
    return await this.#put(app_id, name, { type, key });
  }

  async remove(app_id: string, name: string): Promise<void> {
    await this.get(app_id, name);
    await this.#parts.store.remove(app_id, name);
  }

  async sign(app_id: string, name: string, message: Buffer): Promise<Buffer> {
    const { key, algorithm, ...of } = await this.#open(app_id, name);
    return (algorithm.signing ?? cannot(of, "sign")).sign(key, message);
  }

  /** Fails unless the signature is one of this key. */
  async verify(app_id: string, name: string, message: Buffer, signature: Buffer): Promise<void> {
    const { key, algorithm, ...of } = await this.#open(app_id, name);
    if (!(algorithm.signing ?? cannot(of, "verify")).verify(key, message, signature))
      fail("invalid_request", `the signature is not one of the secret key ${name} for this plaintext`);
  }

  async encrypt(app_id: string, name: string, plain: Buffer, associated: Buffer): Promise<Buffer> {
    const { key, algorithm, ...of } = await this.#open(app_id, name);
    return encryptingOf(algorithm, of, "encrypt", associated).seal(key, plain, associated);
  }

  async decrypt(app_id: string, name: string, sealed: Buffer, associated: Buffer): Promise<Buffer> {
    const { key, algorithm, ...of } = await this.#open(app_id, name);
    return (
      encryptingOf(algorithm, of, "decrypt", associated).open(key, sealed, associated) ??
      fail("invalid_request", `the ciphertext is not one of the secret key ${name} with this associated data`)
    );
  }

  async #put(app_id: string, name: string, { type, key }: { type: string; key: Buffer }): Promise<SecretKey> {
    const { store, sealer, clock } = this.#parts;
    const now = clock.now();
    const public_key = algorithmOf(type).publicKey?.(key) ?? null;
    const made = { name, type, sealed: sealer.seal(place(app_id, name), key), public_key };
    const most = FLY_LIMITS.secret_keys_per_app;
    const version = await store.put(app_id, { ...made, created_at: now, updated_at: now }, most);
    if (version === "no_app") fail("not_found", "the app was deleted in the meantime");
    if (version === "limit")
      fail("limit_reached", `an app has at most ${most} secret keys (limit secret_keys_per_app)`);
    return { ...made, version, created_at: now, updated_at: now };
  }

  async #open(app_id: string, name: string): Promise<Opened> {
    const { type, sealed } = await this.get(app_id, name);
    return { name, type, key: this.#parts.sealer.open(place(app_id, name), sealed), algorithm: algorithmOf(type) };
  }
}

function algorithmOf(type: string): Algorithm {
  const allowed = Object.keys(ALGORITHMS).join(", ");
  return (
    (Object.hasOwn(ALGORITHMS, type) ? ALGORITHMS[type] : undefined) ??
    fail("invalid_request", `there are no secret keys of type ${JSON.stringify(type.slice(0, 40))}`, {
      hint: `the types are ${allowed}`,
      details: [{ path: "body.type", problem: "is not a type of secret keys", allowed }],
    })
  );
}

type Named = Pick<Opened, "name" | "type">;

function cannot({ name, type }: Named, action: string): never {
  const able = Object.keys(ALGORITHMS).filter(
    (one) => Boolean(ALGORITHMS[one]?.signing) === /sign|verify/.test(action),
  );
  fail("invalid_request", `the secret key ${name} is of type ${type}, which cannot ${action}`, {
    hint: `types that can: ${able.join(", ")}`,
  });
}

function encryptingOf(algorithm: Algorithm, of: Named, action: string, associated: Buffer) {
  const { encrypting = cannot(of, action) } = algorithm;
  if (associated.length > 0 && !encrypting.associates)
    fail("invalid_request", `the secret key ${of.name} is of type ${of.type}, which has no associated data`, {
      hint: "leave out associated_data, or use a key of type xaes256gcm",
    });
  return encrypting;
}
