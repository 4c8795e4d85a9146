/** What the emulator puts in the place of what a box has: a database in memory, a simulated host, a door of its own. */
import type { DriverParts } from "#drivers/open.ts";
import type { Server } from "#http/server.ts";
import type { Around } from "#http/server-parts.ts";
import type { Database } from "#stores/database.ts";

export interface Emulated {
  database: Database;
  sim: NonNullable<DriverParts["sim"]>;
  around: Around;
  /** Whether machines are measured, which takes a thread. */
  sampled: boolean;
  /** Lets connections in to the server, instead of it listening itself. */
  listen(server: Server): Promise<{ host: string; port: number }>;
}
