import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import type { Sealer } from "#core/sealer.ts";
import { AcmeClient } from "./acme-client.ts";
import type { ProxyStore } from "./store.ts";
import { keyPem, newKey, signingRequest } from "./x509.ts";

/** Who gives certificates. */
export interface Issuer {
  /** Whether there is an authority that can be asked. */
  readonly configured: boolean;
  /** A certificate for one name, and its key. Fails with what is in the way. */
  order(hostname: string): Promise<{ chain: string; key: KeyObject }>;
}

interface AuthorityParts {
  store: Pick<ProxyStore, "account" | "putAccount">;
  sealer: Sealer;
  clock: Clock;
  /** Empty when there is none. */
  directory_url: string;
  directory_ca: string | undefined;
  /** Puts the answers to the authority's questions in force; resolves when they are. */
  answer(challenges: Record<string, string>): Promise<void>;
}

/** The authority that the platform has its account with. */
export class Authority implements Issuer {
  readonly #parts: AuthorityParts;
  #challenges: Record<string, string> = {};

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
  }

  get configured(): boolean {
    return this.#parts.directory_url !== "";
  }

  async order(hostname: string): Promise<{ chain: string; key: KeyObject }> {
    const { directory_url, directory_ca, clock } = this.#parts;
    if (!this.configured) throw new Error("no authority is set: HANGAR_ACME_DIRECTORY");
    const { key, url } = await this.#account();
    const present = async (token: string, answer: string): Promise<() => void> => {
      await this.#setChallenges({ ...this.#challenges, [token]: answer });
      return () => {
        const { [token]: _, ...others } = this.#challenges;
        void this.#setChallenges(others);
      };
    };
    const client = new AcmeClient({ directory_url, ca: directory_ca, key, clock, present }, url);
    if (!url) await this.#keepAccount(key, await client.account());
    const keys = newKey();
    return { chain: await client.issue(hostname, signingRequest([hostname], keys)), key: keys.privateKey };
  }

  async #setChallenges(challenges: Record<string, string>): Promise<void> {
    this.#challenges = challenges;
    await this.#parts.answer(challenges);
  }

  async #account(): Promise<{ key: KeyObject; url: string | undefined }> {
    const { store, sealer, directory_url } = this.#parts;
    const known = await store.account(directory_url);
    if (!known) return { key: newKey().privateKey, url: undefined };
    return { key: createPrivateKey(sealer.open(`acme:${directory_url}`, known.key)), url: known.url };
  }

  async #keepAccount(key: KeyObject, url: string): Promise<void> {
    const { store, sealer, directory_url } = this.#parts;
    await store.putAccount({ directory: directory_url, key: sealer.seal(`acme:${directory_url}`, keyPem(key)), url });
  }
}
