/** Searches the logs of machines on all their hosts, and follows them from where a search ended. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import { compileFilter } from "./filter.ts";
import type { LiveFrom, LogSource, MergedLine } from "./logs.ts";
import { type LogFound, type LogKey, type LogSearch, mergeFound } from "./search.ts";

export type Search = Omit<LogSearch, "ids">;

export interface Searched {
  lines: MergedLine[];
  next?: LogKey;
  stopped?: "time" | "bytes";
  ends: Record<string, string>;
  damaged: string[];
  /** Hosts that did not respond. */
  away: { host_id: string; reason: string }[];
}

export class LogSearches {
  readonly #driver: Pick<RuntimeDriver, "searchLogs">;
  readonly #clock: Clock;
  readonly #running = new Map<string, number>();

  constructor({ driver, clock }: { driver: Pick<RuntimeDriver, "searchLogs">; clock: Clock }) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** A page of a search; oldest first without lines that others may still precede. */
  async page(org_id: string, sources: readonly LogSource[], search: Search, signal?: AbortSignal): Promise<Searched> {
    const { until = Infinity, order } = search;
    const settled = Math.min(until, this.#clock.now() - MACHINE_LIMITS.logs_settle_ms);
    return await this.#search(org_id, sources, order === "oldest" ? { ...search, until: settled } : search, signal);
  }

  /**
   * Lines from a cursor, or the newest ones; then where to follow on. The last second is searched in one go with the
   * ends of the logs, so that no line is missing between the search and what follows, and none comes twice.
   */
  async *upToNow(
    org_id: string,
    sources: readonly LogSource[],
    search: Search,
    signal: AbortSignal,
  ): AsyncGenerator<MergedLine[], LiveFrom> {
    const { matches } = compileFilter(search.filter);
    if (!search.after) {
      const { lines, ends } = await this.#search(org_id, sources, { ...search, order: "newest" }, signal);
      if (lines.length > 0) yield lines.reverse();
      return { cursors: ends, matches };
    }
    const settled = this.#clock.now() - MACHINE_LIMITS.logs_settle_ms;
    let page: Searched | undefined;
    for (const range of [{ until: settled }, { since: settled }]) {
      let after: LogKey | undefined = search.after;
      do {
        page = await this.#search(org_id, sources, { ...search, ...range, order: "oldest", after }, signal);
        if (page.lines.length > 0) yield page.lines;
        after = page.next;
      } while (after && !signal.aborted);
    }
    return { cursors: page?.ends ?? {}, matches };
  }

  async #search(
    org_id: string,
    sources: readonly LogSource[],
    search: Search,
    signal?: AbortSignal,
  ): Promise<Searched> {
    const running = this.#running.get(org_id) ?? 0;
    if (running >= MACHINE_LIMITS.logs_searches)
      fail("overloaded", `${running} log searches of this organization are running (limit logs_searches)`, {
        retry_after_s: 1,
      });
    this.#running.set(org_id, running + 1);
    try {
      return await this.#onHosts(sources, search, signal);
    } finally {
      const left = (this.#running.get(org_id) ?? 1) - 1;
      if (left > 0) this.#running.set(org_id, left);
      else this.#running.delete(org_id);
    }
  }

  async #onHosts(sources: readonly LogSource[], search: Search, signal?: AbortSignal): Promise<Searched> {
    const away: Searched["away"] = [];
    const hosts = [...Map.groupBy(sources, ({ host_id }) => host_id)];
    const found = await Promise.all(
      hosts.map(async ([host_id, machines]): Promise<LogFound | undefined> => {
        try {
          return await this.#driver.searchLogs({ ...search, ids: machines.map(({ id }) => id) }, host_id, signal);
        } catch (thrown) {
          if (!(thrown instanceof ApiError && thrown.code === "host_unreachable")) throw thrown;
          away.push({ host_id, reason: messageOf(thrown) });
          return undefined;
        }
      }),
    );
    const { lines, ...rest } = mergeFound(
      found.filter((each) => each !== undefined),
      search,
    );
    const names = new Map(sources.map(({ id, name }) => [id, name]));
    const merged = lines.map(({ key, ...line }) => ({
      ...line,
      machine_id: key.id,
      machine_name: names.get(key.id) ?? "",
    }));
    return { ...rest, lines: merged, away };
  }
}
