/** Which objects of a backup nobody can need any more. */
import type { ArchivedChanges, ArchivedSnapshot } from "./archive.ts";

export interface TimedSnapshot extends ArchivedSnapshot {
  /** When it was taken, by the clock of the primary. */
  taken_ms: number;
}

/**
 * Every moment from `from_ms` on can still be restored without them. The newest snapshot from before that moment is where
 * its restore begins, so what leads up to that one is not needed.
 *
 * After a change of primary two histories lie side by side, and a transaction's number says nothing about which it is of.
 * Changes go when they are behind every snapshot that stays, whichever history that is of.
 */
export function superfluous(
  snapshots: readonly TimedSnapshot[],
  changes: readonly ArchivedChanges[],
  from_ms: number,
): string[] {
  const newest = (best: number, { taken_ms }: TimedSnapshot): number =>
    taken_ms <= from_ms ? Math.max(best, taken_ms) : best;
  const begin_ms = snapshots.reduce(newest, Number.NEGATIVE_INFINITY);
  const [kept, old] = [[] as TimedSnapshot[], [] as TimedSnapshot[]];
  for (const snapshot of snapshots) (snapshot.taken_ms >= begin_ms ? kept : old).push(snapshot);
  const needed_after = Math.min(...kept.map(({ position }) => position.txid));
  const behind = changes.filter(({ position }) => position.txid <= needed_after);
  return old.length === 0 ? [] : [...old, ...behind].map(({ key }) => key);
}
