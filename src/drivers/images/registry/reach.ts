/** Restricts the hosts that a pull may connect to: public ones, and those that the operator listed. */
import { GuardedFetch } from "#core/guarded-agent.ts";
import type { Lookup } from "#core/public-addresses.ts";

export interface ReachParts {
  /** Setting `registry_allow_private`: entries of `host[:port]`. */
  allow_private: readonly string[];
  connect_timeout_ms: number;
  lookup?: Lookup | undefined;
}

/** Shared by all pulls of a process. */
export class Reach {
  readonly #private: ReadonlySet<string>;
  readonly #http: GuardedFetch;

  constructor({ allow_private, ...rules }: ReachParts) {
    this.#private = new Set(allow_private.map(originOf));
    this.#http = new GuardedFetch(rules);
  }

  /** Whether the operator allows pulls to connect to this origin at any address. */
  isNamed(origin: string): boolean {
    return this.#private.has(origin);
  }

  /**
   * Makes a request for a registry. Listed hosts may be private, but only for registries that are listed too: otherwise
   * any public registry could make us query a private one and learn the response.
   */
  async fetch(url: URL, init: Parameters<GuardedFetch["fetch"]>[1], registry_origin: string) {
    const open = this.isNamed(registry_origin) && this.isNamed(url.origin);
    return await this.#http.fetch(url, init, { guarded: !open });
  }

  async close(): Promise<void> {
    await this.#http.close();
  }
}

/** The origin of a registry: plain HTTP is allowed on loopback only. */
export function originOf(registry: string): string {
  return new URL(`${isLoopback(registry) ? "http" : "https"}://${registry}`).origin;
}

export function isLoopback(host: string): boolean {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name === "localhost" || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name);
}
