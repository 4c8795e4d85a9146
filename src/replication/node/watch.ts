/** What a primary does all the time: it looks for what applications have written, and whether its databases are still there. */
import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Streams } from "./streams.ts";

export interface Watched {
  clock: Clock;
  databases: Iterable<ReplicatedDatabase>;
  streams: Streams;
  /** Until when, by the monotonic clock, anything may be captured; asked each time. */
  until_ms(): number;
  discover(): void;
  tidy(): void;
}

export async function watchOver(watched: Watched, signal: AbortSignal): Promise<void> {
  const { clock, streams } = watched;
  const due = { discover_ms: 0, tidy_ms: 0, look_ms: 0 };
  /** When each database was last seen to be written. */
  const active_ms = new Map<string, number>();
  while (!signal.aborted) {
    const now_ms = clock.monotonic();
    if (now_ms >= watched.until_ms()) {
      // Somebody else may be primary by now. Whoever gave the right will fence us in a moment.
      await clock.sleep(1);
      continue;
    }
    if (now_ms >= due.discover_ms) {
      watched.discover();
      due.discover_ms = now_ms + REPLICATION_LIMITS.discover_ms;
    }
    if (now_ms >= due.tidy_ms) {
      watched.tidy();
      streams.pump();
      due.tidy_ms = now_ms + REPLICATION_LIMITS.tidy_ms;
    }
    const cold = now_ms >= due.look_ms;
    if (cold) due.look_ms = now_ms + REPLICATION_LIMITS.cold_ms;
    const hot = look(watched, active_ms, now_ms, cold);
    streams.heartbeat();
    await clock.sleep(hot ? REPLICATION_LIMITS.hot_look_ms : REPLICATION_LIMITS.cold_ms / 2);
  }
}

/** Looks at the databases that are likely to have something. True when one of them is busy. */
function look({ databases }: Watched, active_ms: Map<string, number>, now_ms: number, all: boolean): boolean {
  let hot = false;
  for (const database of databases) {
    const active = now_ms - (active_ms.get(database.name) ?? 0) < REPLICATION_LIMITS.hot_ms;
    if (!active && !all) continue;
    if (database.capture().transactions > 0) active_ms.set(database.name, now_ms);
    hot ||= active;
  }
  return hot;
}
