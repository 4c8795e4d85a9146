import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import { Sealer } from "#core/sealer.ts";
import { SettingsError } from "#core/setting-values.ts";
import { HOST_LIMITS } from "./limits.ts";
import type { HostStore } from "./store.ts";
import type { Placing } from "./types.ts";

/**
 * A join token admits one new host: `hjt_<id>_<secret>`. The database stores a hash of the secret and the platform's
 * master key sealed with it, so a host needs both token and database; either alone is useless.
 */
const TOKEN = /^hjt_([0-9a-f]{12})_([0-9a-f]{64})$/;

const hashOf = (secret: string): Buffer => createHash("sha256").update(`hangar host: ${secret}`).digest();
const boxOf = (secret: string): Sealer => new Sealer(createHmac("sha256", secret).update("hangar join token").digest());

export async function makeJoinToken(
  store: HostStore,
  { master_key, clock, ids }: { master_key: Uint8Array; clock: Clock; ids: Ids },
): Promise<{ token: string; expires_at: number }> {
  const id = ids.hex(12);
  const secret = ids.hex(64);
  const expires_at = clock.now() + HOST_LIMITS.join_token_ms;
  await store.addToken({
    id,
    hash: hashOf(secret),
    sealed_key: boxOf(secret).seal(`join:${id}`, master_key),
    expires_at,
  });
  return { token: `hjt_${id}_${secret}`, expires_at };
}

interface JoinParts {
  store: HostStore;
  clock: Clock;
  node_id: string;
}

/**
 * Obtains the master key with a token. Does not consume the token: after a crash before `joinHost`, a start with the
 * same token works.
 */
export async function keyFromToken(token: string, { store, clock }: JoinParts): Promise<Buffer> {
  const [, id = "", secret = ""] = TOKEN.exec(token) ?? [];
  const known = id ? await store.findToken(id) : undefined;
  if (!known || !timingSafeEqual(hashOf(secret), known.hash) || known.expires_at < clock.now()) {
    throw new SettingsError(
      "join_token: it is not one of this platform, was used, or is older than an hour; `hangar hosts join-token` makes a new one",
    );
  }
  return boxOf(secret).open(`join:${id}`, known.sealed_key);
}

/** The host of this data dir: the existing one, or a new one for the token. Without a zone it gets its own. */
export async function joinHost(
  parts: JoinParts,
  { token, ...size }: Omit<Placing, "id"> & { token: string },
): Promise<Placing> {
  const { store, clock, node_id } = parts;
  const placed = (id: string): Placing => ({ ...size, id, zone: size.zone || id });
  const known = (await store.hosts()).find((host) => host.node_id === node_id);
  if (known) return placed(known.id);
  if (token === "")
    throw new SettingsError(
      "role host: this data dir is no host of the platform, or was removed from it; it joins as a new one with --join-token, which `hangar hosts join-token` makes",
    );
  const [, token_id = ""] = TOKEN.exec(token) ?? [];
  await keyFromToken(token, parts);
  const ids = randomIds(clock);
  for (;;) {
    const id = ids.hex(4);
    const taken = (await store.hosts()).some((host) => host.id === id);
    if (!taken && (await store.join({ ...placed(id), node_id }, token_id, clock.now()))) return placed(id);
    // The token or the id was used concurrently: the first fails, the second is retried.
    await keyFromToken(token, parts);
  }
}
