/** What a primary does all the time: it looks for what applications have written, and whether its databases are still there. */
import type { Clock } from "#core/clock.ts";
import type { Captured } from "../database/capture.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Directory } from "./directory.ts";
import type { Streams } from "./streams.ts";

export interface Watched {
  clock: Clock;
  databases: Iterable<ReplicatedDatabase> & Pick<Directory, "quarantine">;
  streams: Streams;
  /** Until when (monotonic) captures are allowed; evaluated each time. */
  until_ms(): number;
  /** Maximum lag of replicas. */
  max_lag_ms: number;
  /** Whether writers must wait until more is acknowledged. */
  unacked(database: ReplicatedDatabase): boolean;
  /** Asks replicas for their positions, when someone waits for them. */
  askForAcks(): void;
  discover(): void;
  tidy(): void;
}

/** Delay when something was left over. */
const AT_ONCE_MS = 1;

export async function watchOver(watched: Watched, signal: AbortSignal): Promise<void> {
  const { clock, streams } = watched;
  let tidy_ms = 0;
  while (!signal.aborted) {
    const now_ms = clock.monotonic();
    if (now_ms >= watched.until_ms()) {
      // Another node may be primary by now. The elector will fence us in a moment.
      await clock.sleep(1);
      continue;
    }
    watched.discover();
    if (now_ms >= tidy_ms) {
      watched.tidy();
      streams.pump();
      tidy_ms = now_ms + REPLICATION_LIMITS.tidy_ms;
    }
    const captured = Array.from(watched.databases, (database) => ({
      database,
      ...captureOne(watched.databases, database),
    }));
    streams.heartbeat();
    watched.askForAcks();
    const wait = !streams.keepsUp(watched.max_lag_ms);
    for (const { database, transactions, too_fast = false } of captured) {
      const unacked = watched.unacked(database);
      database.slowWriters(unacked || too_fast || (wait && (transactions > 0 || database.paused)), unacked);
    }
    const in_a_hurry = captured.some(({ behind, database }) => behind > 0 || database.paused);
    await clock.sleep(in_a_hurry ? AT_ONCE_MS : REPLICATION_LIMITS.look_ms);
  }
}

/** A database that cannot be captured is reopened later; the others continue. */
export function captureOne(databases: Watched["databases"], database: ReplicatedDatabase): Captured {
  try {
    return database.capture();
  } catch (error) {
    databases.quarantine(database.name, error);
    return { transactions: 0, behind: 0 };
  }
}
