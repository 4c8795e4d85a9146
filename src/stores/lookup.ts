import { LIMITS } from "#core/limits.ts";
import { takePrefetched } from "#core/prefetched.ts";
import type { Database } from "./database.ts";

/**
 * What is looked up by one key on nearly every request: who holds a token, which app, which machine. It is
 * remembered until the next commit, by whoever made it, so a remembered answer is the one a read would give.
 * What is found is shared by all who ask and must not be changed.
 */
export function lookup<Found>(
  database: Database,
  kind: string,
  load: (key: string) => Promise<Found | undefined>,
): (key: string) => Promise<Found | undefined> {
  const { version } = database;
  // Where nothing can be remembered, what the request read when it began saves a round trip, once.
  if (!version) return async (key) => (await takePrefetched<Found>(kind, key)) ?? (await load(key));
  const remembered = new Map<string, Found>();
  let as_of: number | undefined;
  return async (key) => {
    // Asked before the read: a commit in between is seen by the read and shows in the next version.
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
