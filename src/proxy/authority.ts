import { createPrivateKey, type KeyObject } from "node:crypto";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { orderCertificate } from "./acme-order.ts";
import type { DnsRecords } from "./dns-hook.ts";
import type { ProxyStore } from "./store.ts";
import { keyPem, newKey } from "./x509.ts";

/** Who gives certificates. */
export interface Issuer {
  /** Whether there is an authority that can be asked. */
  readonly configured: boolean;
  /** Whether it can be asked for `*.` names, which takes TXT records (dns-01). */
  readonly wildcards: boolean;
  /** A certificate for one name, and its key. Fails with what is in the way. */
  order(hostname: string): Promise<{ chain: string; key: KeyObject }>;
}

interface AuthorityParts {
  store: Pick<ProxyStore, "account" | "putAccount" | "word" | "putWord">;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Empty when there is none. */
  directory_url: string;
  directory_ca: string | undefined;
  /** Puts the answers to http-01 challenges in force; resolves when they are. */
  answer(challenges: Record<string, string>): Promise<void>;
  /** Sets the TXT records of dns-01 challenges; undefined when nothing can. */
  records: DnsRecords | undefined;
}

/** An answer to a challenge, on its way to where the authority looks for it. */
interface Answer {
  presented: Promise<void>;
  takeBack(): Promise<void>;
}

/** The certificate authority that the platform has its account with: http-01, and dns-01 for `*.` names. */
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

  /** Ends the order in progress. */
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

  /** Sets the TXT record of a `*.` name. It is written down first, so that one that a crash leaves behind is removed. */
  async #setRecord(hostname: string, value: string): Promise<void> {
    const { store, records } = this.#parts;
    if (!records) throw new Error("no program sets TXT records: HANGAR_ACME_DNS_HOOK");
    const left = await store.word(wordOf(hostname));
    if (left) await this.#removeRecord(hostname, left);
    await store.putWord(wordOf(hostname), value);
    await records.present(recordName(hostname), value);
  }

  async #removeRecord(hostname: string, value: string): Promise<void> {
    const { store, records, log } = this.#parts;
    try {
      await records?.cleanup(recordName(hostname), value);
      await store.putWord(wordOf(hostname), "");
    } catch (thrown) {
      // The next order for the name tries again.
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
const wordOf = (hostname: string): string => `dns-01 ${hostname}`;
