import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import type { Directory } from "./directory.ts";

/**
 * Takes the write lock of every database. Applications in the middle of a transaction may finish it; what they commit
 * after this began is not told to anybody. False when one of them does not, and `giveUp` says that waiting has an end.
 */
export async function lockAll(directory: Directory, clock: Clock, giveUp: () => boolean): Promise<boolean> {
  // A copy: one that fails is taken out.
  for (const database of Array.from(directory)) {
    while (!lockOne(directory, database)) {
      if (giveUp()) return false;
      await clock.sleep(1);
    }
  }
  return true;
}

/** One that fails must not keep the others open. */
function lockOne(directory: Directory, database: ReplicatedDatabase): boolean {
  try {
    return database.closed || database.hold();
  } catch (error) {
    directory.quarantine(database.name, error);
    return true;
  }
}
