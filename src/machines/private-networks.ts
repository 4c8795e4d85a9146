/**
 * Which part of `fdaa::/16` each private network has: 32 bits that are made from a secret of the installation, so that
 * who knows an organization's id does not know where its machines are, and that no other network has.
 */
import { createHash, createHmac } from "node:crypto";
import { fail } from "#core/errors.ts";

/** Keeps which network has which prefix; decides nothing. Implemented in stores/, examined by its suite. */
export interface NetworkStore {
  /** `prefix` is null of a network whose machines got their addresses before prefixes were kept. */
  findNetwork(org_id: string, name: string): Promise<{ prefix: string | null } | undefined>;
  /** Networks whose prefix is null. */
  unkept(): Promise<{ org_id: string; name: string }[]>;
  /** Gives a network a prefix, unless it has one or another network has this one. */
  keepPrefix(org_id: string, name: string, prefix: string): Promise<void>;
}

/** Of 2^32 prefixes the chance to find so many taken in a row is none. */
const TRIES = 16;

export class PrivateNetworks {
  readonly #store: NetworkStore;
  readonly #secret: Uint8Array;

  constructor(store: NetworkStore, secret: Uint8Array) {
    this.#store = store;
    this.#secret = secret;
  }

  /** The prefix of an organization's network, 8 hex digits: the same for all its machines, however old. */
  async prefix(org_id: string, name: string): Promise<string> {
    const store = this.#store;
    for (let tries = 0; tries < TRIES; tries++) {
      const known = await store.findNetwork(org_id, name);
      if (known) return known.prefix ?? prefixFromOrg(org_id, name);
      // What older networks have is written down first, so that it is given to nobody else.
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

/** How prefixes were made before they were kept: machines that are there keep their addresses. */
export const prefixFromOrg = (org_id: string, name: string): string =>
  createHash("sha256").update(`${org_id}/${name}`).digest("hex").slice(0, 8);
