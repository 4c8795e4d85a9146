import { createPrivateKey, type KeyObject } from "node:crypto";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { orderCertificate } from "./acme-order.ts";
import type { DnsRecords } from "./dns-hook.ts";
import type { ProxyStore } from "./store.ts";
import { keyPem, newKey } from "./x509.ts";

/** Issues certificates. */
export interface Issuer {
  /** Whether a certificate authority is configured. */
  readonly configured: boolean;
  /** Whether wildcard names can be ordered, which needs TXT records (dns-01). */
  readonly wildcards: boolean;
  /** Orders a certificate and key for one name. Fails with the reason. */
  order(hostname: string): Promise<{ chain: string; key: KeyObject }>;
}

interface AuthorityParts {
  store: Pick<ProxyStore, "account" | "putAccount" | "value" | "putValue">;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Empty when none is configured. */
  directory_url: string;
  directory_ca: string | undefined;
  /** Publishes http-01 challenge responses; resolves when all workers have them. */
  answer(challenges: Record<string, string>): Promise<void>;
  /** Sets TXT records for dns-01 challenges; undefined when that is not configured. */
  records: DnsRecords | undefined;
}

/** A challenge response being published. */
interface Answer {
  presented: Promise<void>;
  takeBack(): Promise<void>;
}

/** The configured certificate authority: http-01, and dns-01 for wildcard names. */
export class Authority implements Issuer {
  readonly #parts: AuthorityParts;
  readonly #closing = new AbortController();
  #challenges: Record<string, string> = {};

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
  }

  get configured(): boolean {
    return this.#parts.directory_url !== "";
  }

  get wildcards(): boolean {
    return this.configured && this.#parts.records !== undefined;
  }

  /** Aborts the order in progress. */
  close(): void {
    this.#closing.abort();
  }

  async order(hostname: string): Promise<{ chain: string; key: KeyObject }> {
    const { directory_url, directory_ca: ca, clock } = this.#parts;
    if (!this.configured) throw new Error("no authority is set: HANGAR_ACME_DIRECTORY");
    const { key, url: account_url } = await this.#account();
    const challenge = hostname.startsWith("*.") ? "dns-01" : "http-01";
    const answers: Answer[] = [];
    try {
      const { chain, key: own } = await orderCertificate(
        { directory_url, ca, account_key: keyPem(key), account_url, hostname, challenge },
        {
          clock,
          signal: this.#closing.signal,
          onAccount: (url) => this.#keepAccount(key, url),
          present: async (token, value) => {
            const answer = challenge === "dns-01" ? this.#record(hostname, value) : this.#httpAnswer(token, value);
            answers.push(answer);
            await answer.presented;
          },
        },
      );
      return { chain, key: createPrivateKey(own) };
    } finally {
      for (const { presented, takeBack } of answers) await presented.catch(() => {}).then(takeBack);
    }
  }

  #httpAnswer(token: string, value: string): Answer {
    return {
      presented: this.#setChallenges({ ...this.#challenges, [token]: value }),
      takeBack: () => {
        const { [token]: _, ...others } = this.#challenges;
        return this.#setChallenges(others);
      },
    };
  }

  async #setChallenges(challenges: Record<string, string>): Promise<void> {
    this.#challenges = challenges;
    await this.#parts.answer(challenges);
  }

  #record(hostname: string, value: string): Answer {
    return { presented: this.#setRecord(hostname, value), takeBack: () => this.#removeRecord(hostname, value) };
  }

  /** Sets the TXT record of a wildcard name. It is stored first, so that a record left by a crash is removed later. */
  async #setRecord(hostname: string, value: string): Promise<void> {
    const { store, records } = this.#parts;
    if (!records) throw new Error("no program sets TXT records: HANGAR_ACME_DNS_HOOK");
    const left = await store.value(keyOf(hostname));
    if (left) await this.#removeRecord(hostname, left);
    await store.putValue(keyOf(hostname), value);
    await records.present(recordName(hostname), value);
  }

  async #removeRecord(hostname: string, value: string): Promise<void> {
    const { store, records, log } = this.#parts;
    try {
      await records?.cleanup(recordName(hostname), value);
      await store.putValue(keyOf(hostname), "");
    } catch (thrown) {
      // The next order for the name retries.
      log.warn({ hostname, problem: messageOf(thrown) }, "a TXT record of a dns-01 challenge is left");
    }
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

const recordName = (hostname: string): string => `_acme-challenge.${hostname.replace(/^\*\./, "")}`;
const keyOf = (hostname: string): string => `dns-01 ${hostname}`;
