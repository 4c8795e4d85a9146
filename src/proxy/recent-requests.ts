import { PROXY_LIMITS } from "./limits.ts";
import type { RecentRequest } from "./table.ts";

/** Keeps the newest failed and slow requests of each app, in memory. */
export class RecentRequests {
  /** The apps with the newest ones last. */
  readonly #apps = new Map<string, RecentRequest[]>();

  add(app_id: string, requests: readonly RecentRequest[]): void {
    const list = [...(this.#apps.get(app_id) ?? []), ...requests].slice(-PROXY_LIMITS.requests_kept);
    this.#apps.delete(app_id);
    this.#apps.set(app_id, list);
    if (this.#apps.size <= PROXY_LIMITS.requests_apps) return;
    const [oldest] = this.#apps.keys();
    if (oldest !== undefined) this.#apps.delete(oldest);
  }

  /** Newest first; workers report independently, so they are sorted. */
  of(app_id: string): RecentRequest[] {
    return [...(this.#apps.get(app_id) ?? [])].sort((a, b) => b.at_ms - a.at_ms);
  }
}
