import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { checkSlug, toSlug } from "#core/names.ts";
import { DEFAULT_ORG } from "./guard.ts";
import type { Principal } from "./principal.ts";
import type { AuthStore } from "./store.ts";
import type { Org } from "./types.ts";

interface Parts {
  store: AuthStore;
  clock: Clock;
  /** Deletes what other modules store for a deleted organization. */
  deleted?(org_id: string): Promise<void>;
}

/** The rules about organizations. */
export class OrgService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async visibleTo(principal: Principal): Promise<Org[]> {
    return (await this.#parts.store.orgs()).filter((org) => principal.sees(org));
  }

  async get(slug: string): Promise<Org> {
    return (
      (await this.#parts.store.findOrg(slug)) ?? fail("not_found", `there is no organization ${JSON.stringify(slug)}`)
    );
  }

  async create(wanted: { name: string; slug?: string | undefined }, ids: Ids): Promise<Org> {
    const slug = wanted.slug ?? toSlug(wanted.name);
    checkSlug(slug, "body.slug");
    if (/\p{C}/u.test(wanted.name)) {
      fail("invalid_name", "the name of an organization must not contain control characters", {
        details: [{ path: "body.name", problem: "has a control character" }],
      });
    }
    const org: Org = {
      id: ids.short(),
      slug,
      name: wanted.name,
      numeric_id: ids.numeric(),
      created_at: this.#parts.clock.now(),
    };
    const result = await this.#parts.store.insertOrg(org, LIMITS.orgs);
    if (result === "slug_taken") fail("name_taken", `Validation failed: Slug has already been taken: ${slug}`);
    if (result === "limit") fail("limit_reached", `there are at most ${LIMITS.orgs} organizations (limit orgs)`);
    return await this.get(slug);
  }

  async delete(slug: string): Promise<void> {
    if (slug === DEFAULT_ORG) fail("forbidden", `the organization ${DEFAULT_ORG} is built in and cannot be deleted`);
    const org = await this.get(slug);
    if (!(await this.#parts.store.deleteOrg(org.id))) {
      fail("org_not_empty", `organization ${slug} still has apps`, { hint: `hangar apps list --org ${slug}` });
    }
    await this.#parts.deleted?.(org.id);
  }
}
