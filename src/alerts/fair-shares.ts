import { Slots } from "#core/slots.ts";
import { ALERT_LIMITS } from "./limits.ts";
import type { QueryFunction } from "./rules/types.ts";

/**
 * Slots for rule evaluations. An organization with any number of slow rules takes turns with the others: few of its
 * queries run or wait for one of the common slots.
 */
export class FairShares {
  readonly #all = new Slots(ALERT_LIMITS.queries_at_once);
  readonly #orgs = new Map<string, { groups: Slots; queries: Slots }>();

  /** Forgets the other organizations. */
  keep(org_ids: ReadonlySet<string>): void {
    for (const id of this.#orgs.keys()) if (!org_ids.has(id)) this.#orgs.delete(id);
  }

  evaluate(org_id: string, work: () => Promise<void>): Promise<void> {
    return this.#of(org_id).groups.use(work);
  }

  /** The query, within the organization's share. */
  query(org_id: string, query: QueryFunction): QueryFunction {
    const { queries } = this.#of(org_id);
    return (expr, at_ms) => queries.use(() => this.#all.use(() => query(expr, at_ms)));
  }

  #of(org_id: string): { groups: Slots; queries: Slots } {
    const { org_groups_at_once, org_queries_at_once } = ALERT_LIMITS;
    const known = this.#orgs.get(org_id);
    const share = known ?? { groups: new Slots(org_groups_at_once), queries: new Slots(org_queries_at_once) };
    this.#orgs.set(org_id, share);
    return share;
  }
}
