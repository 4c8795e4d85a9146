/** Finds objects of a backup that are past the retention. */
import type { ArchivedChanges, ArchivedSnapshot } from "./archive.ts";

export interface TimedSnapshot extends ArchivedSnapshot {
  /** When it was taken, by the clock of the primary. */
  taken_ms: number;
}

/**
 * Objects that are not needed to restore any moment from `from_ms` on. The restore of that moment begins with the
 * newest snapshot before it. After a failover two histories exist side by side, and a txid does not show to which it
 * belongs, so changes are removed only when they precede every retained snapshot of any history.
 */
export function superfluous(
  snapshots: readonly TimedSnapshot[],
  changes: readonly ArchivedChanges[],
  from_ms: number,
): string[] {
  const newest = (best: number, { taken_ms }: TimedSnapshot): number =>
    taken_ms <= from_ms ? Math.max(best, taken_ms) : best;
  const begin_ms = snapshots.reduce(newest, Number.NEGATIVE_INFINITY);
  const [retained, old] = [[] as TimedSnapshot[], [] as TimedSnapshot[]];
  for (const snapshot of snapshots) (snapshot.taken_ms >= begin_ms ? retained : old).push(snapshot);
  const needed_after = Math.min(...retained.map(({ position }) => position.txid));
  const behind = changes.filter(({ position }) => position.txid <= needed_after);
  return old.length === 0 ? [] : [...old, ...behind].map(({ key }) => key);
}
