/** HTTP clients that connect to public addresses only, unless configured otherwise. */
import type { Agent, RequestInit, Response } from "undici";
import { guardedLookup, type Lookup, literalProblem } from "./public-addresses.ts";

export interface AgentRules {
  /** Refuses every address that is not public, with `AddressRefused` as the cause. */
  guarded: boolean;
  connect_timeout_ms: number;
  lookup?: Lookup | undefined;
}

export async function openAgent(rules: AgentRules, options: Agent.Options = {}): Promise<Agent> {
  // Loaded on first use: many platforms never need it, and it takes 14 MB.
  const { Agent, buildConnector } = await import("undici");
  const { guarded, lookup } = rules;
  const own = guarded ? { lookup: guardedLookup(lookup) } : lookup ? { lookup: lookup as never } : {};
  const connect = buildConnector({ timeout: rules.connect_timeout_ms, allowH2: false, ...own });
  return new Agent({
    ...options,
    connect(target, done) {
      // A literal address is never looked up, so it is checked here.
      const problem = guarded ? literalProblem(target.hostname) : undefined;
      if (problem) return done(problem, null);
      connect(target, done);
    },
  });
}

/**
 * `fetch` over two connection pools, so that a connection to a private address never serves a request restricted to
 * public ones.
 */
export class GuardedFetch {
  readonly #rules: Omit<AgentRules, "guarded">;
  readonly #agents = new Map<boolean, Promise<Agent>>();

  constructor(rules: Omit<AgentRules, "guarded">) {
    this.#rules = rules;
  }

  async fetch(url: URL, init: RequestInit, { guarded }: { guarded: boolean }): Promise<Response> {
    const agent = this.#agents.get(guarded) ?? openAgent({ ...this.#rules, guarded });
    this.#agents.set(guarded, agent);
    const [{ fetch }, dispatcher] = await Promise.all([import("undici"), agent]);
    return await fetch(url, { ...init, dispatcher });
  }

  async close(): Promise<void> {
    const agents = await Promise.all(this.#agents.values());
    await Promise.all(agents.map((agent) => agent.destroy()));
  }
}
