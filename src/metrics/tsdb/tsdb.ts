import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { makeDir } from "./files.ts";
import { TSDB_LIMITS, type TsdbLimits } from "./limits.ts";
import { OrgDatabase } from "./org-database.ts";

const PLAIN_ORG = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/**
 * The metrics of all orgs. An org is a directory, never a label, so no query or sample can name another's data.
 * Directories are opened on demand and closed when idle.
 */
export class Tsdb {
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #limits: TsdbLimits;
  readonly #orgs = new Map<string, OrgDatabase>();
  /** Orgs being closed or removed: callers wait. */
  readonly #leaving = new Map<string, Promise<void>>();

  constructor(dir: string, clock: Clock, limits: Partial<TsdbLimits> = {}) {
    this.#dir = dir;
    this.#clock = clock;
    this.#limits = { ...TSDB_LIMITS, ...limits };
    makeDir(dir);
  }

  async org(id: string): Promise<OrgDatabase> {
    while (this.#leaving.has(id)) await this.#leaving.get(id);
    let org = this.#orgs.get(id);
    if (!org) {
      org = new OrgDatabase(this.#path(id), this.#clock, this.#limits);
      this.#orgs.set(id, org);
    }
    org.used_at = this.#clock.monotonic();
    return org;
  }

  /** For queries: undefined when the org has no metrics, instead of creating a directory. */
  async existing(id: string): Promise<OrgDatabase | undefined> {
    return this.#orgs.has(id) || this.#leaving.has(id) || existsSync(this.#path(id)) ? this.org(id) : undefined;
  }

  /** Resolves when everything appended before, of one org or of all, is durable. */
  async flush(id?: string): Promise<void> {
    if (id !== undefined) await (await this.existing(id))?.partition.flush();
    else await Promise.all(Array.from(this.#orgs.values(), ({ partition }) => partition.flush()));
  }

  /** Periodic maintenance, and closing idle orgs. */
  async maintain(): Promise<void> {
    for (const [id, org] of this.#orgs) {
      const { partition } = org;
      await partition.maintain();
      // Data that a broken WAL may have lost can still be written as blocks.
      if (partition.broken) await partition.compact().catch(() => undefined);
      const idle = this.#clock.monotonic() - org.used_at >= this.#limits.org_idle_ms;
      if (idle || partition.broken) await this.#leave(id, org, () => partition.close());
    }
  }

  /** Deletes the org's metrics. */
  async drop(id: string): Promise<void> {
    const org = await this.existing(id);
    if (org) await this.#leave(id, org, () => org.partition.destroy());
  }

  async close(): Promise<void> {
    await Promise.all([...this.#orgs].map(([id, org]) => this.#leave(id, org, () => org.partition.close())));
  }

  async #leave(id: string, org: OrgDatabase, how: () => Promise<void>): Promise<void> {
    if (this.#orgs.get(id) !== org) return;
    this.#orgs.delete(id);
    const left = how().finally(() => this.#leaving.delete(id));
    this.#leaving.set(
      id,
      left.catch(() => undefined),
    );
    await left;
  }

  /** A safe directory name: unusual ids are hashed. */
  #path(id: string): string {
    if (PLAIN_ORG.test(id)) return join(this.#dir, id);
    return join(this.#dir, `~${createHash("sha256").update(id).digest("hex").slice(0, 40)}`);
  }
}
