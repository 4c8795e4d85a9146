import { join } from "node:path";
import type { Settings } from "#core/settings.ts";
import type { Database } from "./database.ts";
import type { PostgresOptions } from "./postgres/database.ts";
import { timelineFile } from "./postgres/timeline-file.ts";
import { openSqlite } from "./sqlite/database.ts";

/** Opens the configured database. `onBroken` is called once when it can no longer be trusted. */
export async function openDatabase(
  settings: Settings,
  onBroken: (error: Error) => void = () => {},
  callbacks: Pick<PostgresOptions, "onPooler" | "onStuck" | "onOldPrimary"> = {},
): Promise<Database> {
  if (settings.database_url) {
    // Loaded on demand: the driver takes 8 MB, and most installations have no PostgreSQL.
    const { openPostgres } = await import("./postgres/database.ts");
    const { database_url, database_connections: connections } = settings;
    const timelines = timelineFile(join(settings.data_dir, "database-timelines"));
    return await openPostgres(database_url, { connections, timelines, ...callbacks });
  }
  return await openSqlite(join(settings.data_dir, "hangar.db"), { onBroken, ballast: true, checked: true });
}
