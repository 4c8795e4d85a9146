/**
 * The platform's side of elections: leases of an app's replicated databases, for nodes that reach the platform and
 * nothing else. `HttpLeases` is the other end.
 */
import type { Clock } from "#core/clock.ts";
import { type Admitted, appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { LeaseRows } from "./lease-rows.ts";
import { RowLeases } from "./row-leases.ts";

export interface LeaseParts {
  /** The row of one lease of one app. */
  rows(app_id: string, name: string): LeaseRows;
  clock: Clock;
}

const Node = Type.String({ minLength: 1, maxLength: 64, description: "The node's id." });
const Term = Type.Integer({ minimum: 0, description: "Goes up with every change of hands, and is never used twice." });
const Ttl = Type.Integer({
  minimum: 1000,
  maximum: 60_000,
  description: "Milliseconds without renewal until it runs out.",
});
const Lease = Type.Object({
  node: Type.String(),
  url: Type.String({ description: "Where the other nodes reach it." }),
  term: Type.Integer(),
});
const Acquire = Type.Object({
  node: Node,
  url: Type.String({ minLength: 1, maxLength: 500 }),
  term: Term,
  complete_term: Type.Integer({ minimum: 0, description: "The highest term in which the node had everything." }),
  ttl_ms: Ttl,
  force: Type.Optional(
    Type.Boolean({ description: "Also when the node may lack transactions of the last primary, which are then lost." }),
  ),
});
const InSync = Type.Object({
  version: Type.Integer({
    minimum: 0,
    description: "Goes up with every list of a term; an older one changes nothing.",
  }),
  nodes: Type.Array(Node, { maxItems: 100, description: "Only these may become primary next, unless forced." }),
});
const Renew = Type.Object({ node: Node, term: Term, ttl_ms: Ttl, in_sync: Type.Optional(InSync) });
const Release = Type.Object({
  node: Node,
  term: Term,
  successor: Type.Optional(Type.Object({ node: Node, for_ms: Type.Integer({ minimum: 0, maximum: 60_000 }) })),
});

const BASE = "/v1/apps/:app_name/db_leases/:lease_name";

export function leaseRoutes(parts: LeaseParts): Row[] {
  const leases = new SeenLeases(parts);
  const holderAnswer = { status: 200, schema: Type.Object({ lease: Type.Union([Lease, Type.Null()]) }) } as const;
  return [
    route(`GET ${BASE}`, {
      summary: "Which node of a replicated database is primary",
      part: "databases",
      access: "read app",
      response: holderAnswer,
      handle: async ({ params, ...admitted }) => ({
        lease: (await leases.of(admitted, params.lease_name).holder()) ?? null,
      }),
    }),
    route(`POST ${BASE}/acquire`, {
      summary: "Acquire the lease and become primary, if no node holds it",
      description: "`lease` is null when another node has it, or when this one may lack transactions.",
      part: "databases",
      access: "control app",
      body: Acquire,
      response: holderAnswer,
      async handle({ params, body: { ttl_ms, force, ...candidate }, ...admitted }) {
        return { lease: (await leases.of(admitted, params.lease_name).acquire(candidate, ttl_ms, force)) ?? null };
      },
    }),
    route(`POST ${BASE}/renew`, {
      summary: "Stay primary",
      description: "`renewed` is false when the lease is no longer this one; then it is lost for good.",
      part: "databases",
      access: "control app",
      body: Renew,
      response: { status: 200, schema: Type.Object({ renewed: Type.Boolean() }) },
      async handle({ params, body: { ttl_ms, in_sync, ...lease }, ...admitted }) {
        const renewed = await leases.of(admitted, params.lease_name).renew({ ...lease, url: "" }, ttl_ms, in_sync);
        return { renewed };
      },
    }),
    route(`POST ${BASE}/release`, {
      summary: "Stop being primary; a named successor alone may take over for a while",
      part: "databases",
      access: "control app",
      body: Release,
      response: { status: 200, schema: Type.Object({ ok: Type.Boolean() }) },
      async handle({ params, body: { successor, ...lease }, ...admitted }) {
        await leases.of(admitted, params.lease_name).release({ ...lease, url: "" }, successor);
        return { ok: true };
      },
    }),
  ];
}

/** What this process has seen of each lease, and since when. */
class SeenLeases {
  readonly #parts: LeaseParts;
  readonly #seen = new Map<string, RowLeases>();

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  of(admitted: Admitted, name: string): RowLeases {
    const { id } = appOf(admitted);
    const key = `${id} ${name}`;
    const known = this.#seen.get(key) ?? new RowLeases(this.#parts.rows(id, name), this.#parts.clock);
    // Least recently used first.
    this.#seen.delete(key);
    this.#seen.set(key, known);
    const [oldest] = this.#seen.keys();
    if (oldest !== undefined && this.#seen.size > REPLICATION_LIMITS.leases_seen) this.#seen.delete(oldest);
    return known;
  }
}
