import { LIMITS } from "#core/limits.ts";
import { takePrefetched } from "#core/prefetched.ts";
import type { Database } from "./database.ts";

/**
 * Caches lookups of nearly every request: token, app, machine. Entries are valid until the next commit by anyone, so
 * they equal a read. Results are shared and must not be modified.
 */
export function lookup<Found>(
  database: Database,
  kind: string,
  load: (key: string) => Promise<Found | undefined>,
): (key: string) => Promise<Found | undefined> {
  const { version } = database;
  // Without a cache, the request's prefetched row saves a round trip, once.
  if (!version) return async (key) => (await takePrefetched<Found>(kind, key)) ?? (await load(key));
  const remembered = new Map<string, Found>();
  let as_of: number | undefined;
  return async (key) => {
    // Read before the query: a commit in between shows in the next version.
    const now = version.call(database);
    if (now !== as_of || remembered.size >= LIMITS.lookups) remembered.clear();
    as_of = now;
    const known = remembered.get(key);
    if (known) return known;
    const found = await load(key);
    if (found && as_of === now) remembered.set(key, found);
    return found;
  };
}
