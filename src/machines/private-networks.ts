/**
 * Which part of `fdaa::/16` each private network has: 32 bits derived from a secret of the installation, so that an
 * organization's id does not reveal where its machines are. No other network has the same bits.
 */
import { createHash, createHmac } from "node:crypto";
import { fail } from "#core/errors.ts";

/** Stores the prefix of each network; decides nothing. Implemented in stores/, tested by its suite. */
export interface NetworkStore {
  /** `prefix` is null for a network older than stored prefixes. */
  findNetwork(org_id: string, name: string): Promise<{ prefix: string | null } | undefined>;
  /** Networks whose prefix is null. */
  unkept(): Promise<{ org_id: string; name: string }[]>;
  /** Stores a network's prefix, unless it has one or another network has this one. */
  keepPrefix(org_id: string, name: string, prefix: string): Promise<void>;
}

/** Among 2^32 prefixes this many consecutive collisions do not happen. */
const TRIES = 16;

export class PrivateNetworks {
  readonly #store: NetworkStore;
  readonly #secret: Uint8Array;

  constructor(store: NetworkStore, secret: Uint8Array) {
    this.#store = store;
    this.#secret = secret;
  }

  /** The prefix of an organization's network, 8 hex digits, the same for all its machines. */
  async prefix(org_id: string, name: string): Promise<string> {
    const store = this.#store;
    for (let tries = 0; tries < TRIES; tries++) {
      const known = await store.findNetwork(org_id, name);
      if (known) return known.prefix ?? prefixFromOrg(org_id, name);
      // Prefixes of older networks are stored first, so that none is assigned twice.
      for (const old of await store.unkept())
        await store.keepPrefix(old.org_id, old.name, prefixFromOrg(old.org_id, old.name));
      const made = createHmac("sha256", this.#secret).update(`${org_id}/${name}/${tries}`).digest("hex").slice(0, 8);
      if (!RESERVED.test(made)) await store.keepPrefix(org_id, name, made);
    }
    fail("overloaded", "no prefix is free for this private network", { retry_after_s: 1 });
  }
}

/** Network 0 is the platform's own (network/overlay.ts); `fdaa:ffff` are addresses of apps (network/addresses.ts). */
const RESERVED = /^(00000000|ffff)/;

/** How prefixes were derived before they were stored; existing machines keep their addresses. */
export const prefixFromOrg = (org_id: string, name: string): string =>
  createHash("sha256").update(`${org_id}/${name}`).digest("hex").slice(0, 8);
