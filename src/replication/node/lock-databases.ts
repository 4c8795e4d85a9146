import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import type { Directory } from "./directory.ts";

/**
 * Takes the write lock of every database. Running transactions may finish; commits after this began are not announced.
 * Returns false when one does not finish and `giveUp` ends the wait.
 */
export async function lockAll(directory: Directory, clock: Clock, giveUp: () => boolean): Promise<boolean> {
  // Those that were made a moment ago, too: nobody else would have them.
  directory.discover();
  await directory.settle();
  // A copy, because failing ones are removed.
  for (const database of Array.from(directory)) {
    while (!lockOne(directory, database)) {
      if (giveUp()) return false;
      await clock.sleep(1);
    }
  }
  return true;
}

/** A failure must not keep the others open. */
function lockOne(directory: Directory, database: ReplicatedDatabase): boolean {
  try {
    return database.closed || database.hold();
  } catch (error) {
    directory.quarantine(database.name, error);
    return true;
  }
}
