/** The lease in the platform's own store, over its API: `platform:http://host:port/APP/NAME` and a token. */
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

const REQUEST_MS = 3000;

export interface PlatformPlace {
  /** Where the platform is reached. */
  origin: string;
  app: string;
  name: string;
  /** A token that may control the app; asked for at every request, because it may be replaced. */
  token(): string;
}

export class HttpLeases implements LeaseStore {
  readonly #url: string;
  readonly #token: () => string;

  constructor({ origin, app, name, token }: PlatformPlace) {
    this.#url = `${origin}/v1/apps/${encodeURIComponent(app)}/db_leases/${encodeURIComponent(name)}`;
    this.#token = token;
  }

  async acquire(candidate: Candidate, ttl_ms: number, force = false): Promise<Lease | undefined> {
    const { node, url, term, complete_term } = candidate;
    return leaseIn(await this.#ask("/acquire", { node, url, term, complete_term, ttl_ms, force }));
  }

  async renew({ node, term }: Lease, ttl_ms: number): Promise<boolean> {
    const { renewed } = await this.#ask("/renew", { node, term, ttl_ms });
    return renewed === true;
  }

  async release({ node, term }: Lease, successor?: { node: string; for_ms: number }): Promise<void> {
    await this.#ask("/release", { node, term, ...(successor ? { successor } : {}) });
  }

  async holder(): Promise<Lease | undefined> {
    return leaseIn(await this.#ask(""));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #ask(path: string, body?: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#url}${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${this.#token()}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`the platform's lease: ${response.status} ${text.trim()}`);
    return JSON.parse(text) as Record<string, unknown>;
  }
}

function leaseIn({ lease }: Record<string, unknown>): Lease | undefined {
  return (lease as Lease | null) ?? undefined;
}
