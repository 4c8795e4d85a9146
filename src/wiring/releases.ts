/** Releases of apps, put together. */
import { ReleaseLeases } from "#apps/release-leases.ts";
import { releaseRoutes } from "#apps/release-routes.ts";
import { ReleaseService } from "#apps/releases.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Row } from "#http/route.ts";
import type { Database } from "#stores/database.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";

export function openReleases(
  database: Database,
  { clock, log }: { clock: Clock; log: Log },
): { leases: ReleaseLeases; rows: Row[] } {
  const store = sqlReleaseStore(database);
  const leases = new ReleaseLeases({ store, clock, log });
  return { leases, rows: releaseRoutes(new ReleaseService({ store, clock, onLease: () => leases.wake() })) };
}
