/** The primary's loop: polls for new commits of applications, and for databases that were removed. */
import type { Clock } from "#core/clock.ts";
import type { Captured } from "../database/capture.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { WriteWatch } from "../wal/write-watch.ts";
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
  /** Requests the replicas' durable positions, when a caller waits for them. */
  requestAcks(): void;
  discover(): void;
  tidy(): void;
}

/** Delay when something was left over. */
const AT_ONCE_MS = 1;

export async function watchOver(watched: Watched, signal: AbortSignal): Promise<void> {
  const writes = new WriteWatch<ReplicatedDatabase>();
  try {
    await lookAgainAndAgain(watched, writes, signal);
  } finally {
    writes.close();
  }
}

async function lookAgainAndAgain(
  watched: Watched,
  writes: WriteWatch<ReplicatedDatabase>,
  signal: AbortSignal,
): Promise<void> {
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
    writes.follow(watched.databases);
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
    watched.requestAcks();
    const wait = !streams.keepsUp(watched.max_lag_ms);
    for (const { database, transactions, too_fast = false } of captured) {
      const unacked = watched.unacked(database);
      const slow = unacked || too_fast || (wait && (transactions > 0 || database.paused));
      attempt(watched.databases, database, () => database.slowWriters(slow, unacked));
    }
    const in_a_hurry = captured.some(({ behind, database }) => behind > 0 || database.paused);
    if (in_a_hurry) await clock.sleep(AT_ONCE_MS);
    else
      await untilNextLook(
        clock,
        writes,
        captured.some(({ transactions }) => transactions > 0),
      );
  }
}

/** Waits for the next commit, or for the next poll of all databases. */
async function untilNextLook(clock: Clock, writes: WriteWatch<ReplicatedDatabase>, found: boolean): Promise<void> {
  const { look_ms, quiet_look_ms, look_again_ms } = REPLICATION_LIMITS;
  const due_ms = clock.monotonic() + (writes.quiet ? quiet_look_ms : look_ms);
  // What is committed shortly after what was just captured goes together with the next.
  if (found) await clock.sleep(look_again_ms);
  for (;;) {
    const now_ms = clock.monotonic();
    if (now_ms >= due_ms || writes.committed(now_ms)) return;
    await writes.pause(due_ms - now_ms);
  }
}

export function captureOne(databases: Watched["databases"], database: ReplicatedDatabase): Captured {
  return attempt(databases, database, () => database.capture()) ?? { transactions: 0, behind: 0 };
}

/** A database that fails is reopened later; the others continue. */
function attempt<T>(databases: Watched["databases"], database: ReplicatedDatabase, work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    databases.quarantine(database.name, error);
    return undefined;
  }
}
