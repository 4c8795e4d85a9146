/** The lease in the platform's own store, over its API, with a token or from inside a machine. */
import type { InSync } from "./in-sync.ts";
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

const REQUEST_MS = 3000;

/** Calls the platform's API over some transport. */
export type Send = (method: string, path: string, body?: object) => Promise<{ status: number; text: string }>;

export interface PlatformPlace {
  app: string;
  name: string;
  send: Send;
}

/** `token`: may control the app; read at every request, because it may be replaced. */
export function sendTo(origin: string, token: () => string): Send {
  return async (method, path, body) => {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${token()}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    return { status: response.status, text: await response.text() };
  };
}

export class HttpLeases implements LeaseStore {
  readonly #path: string;
  readonly #send: Send;

  constructor({ app, name, send }: PlatformPlace) {
    this.#path = `/v1/apps/${encodeURIComponent(app)}/db_leases/${encodeURIComponent(name)}`;
    this.#send = send;
  }

  async acquire(candidate: Candidate, ttl_ms: number, force = false): Promise<Lease | undefined> {
    const { node, url, term, complete_term } = candidate;
    return leaseIn(await this.#request("/acquire", { node, url, term, complete_term, ttl_ms, force }));
  }

  async renew({ node, term }: Lease, ttl_ms: number, in_sync?: InSync): Promise<boolean> {
    const { renewed } = await this.#request("/renew", { node, term, ttl_ms, ...(in_sync ? { in_sync } : {}) });
    return renewed === true;
  }

  async release({ node, term }: Lease, successor?: { node: string; for_ms: number }): Promise<void> {
    await this.#request("/release", { node, term, ...(successor ? { successor } : {}) });
  }

  async holder(): Promise<Lease | undefined> {
    return leaseIn(await this.#request(""));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #request(path: string, body?: object): Promise<Record<string, unknown>> {
    const { status, text } = await this.#send(body ? "POST" : "GET", `${this.#path}${path}`, body);
    if (status !== 200) throw new Error(`the platform's lease: ${status} ${text.trim()}`);
    return JSON.parse(text) as Record<string, unknown>;
  }
}

function leaseIn({ lease }: Record<string, unknown>): Lease | undefined {
  return (lease as Lease | null) ?? undefined;
}
