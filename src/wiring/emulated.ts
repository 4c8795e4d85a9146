/** Replacements for the host in the emulator: an in-memory database, a simulated host, and a listener of its own. */
import type { DriverParts } from "#drivers/open.ts";
import type { Server } from "#http/server.ts";
import type { Around } from "#http/server-parts.ts";
import type { Database } from "#stores/database.ts";

export interface Emulated {
  database: Database;
  sim: NonNullable<DriverParts["sim"]>;
  around: Around;
  /** Whether machines are measured, which needs a thread. */
  sampled: boolean;
  /** Passes connections to the server, which does not listen itself. */
  listen(server: Server): Promise<{ host: string; port: number }>;
}
