import type { Clock } from "#core/clock.ts";

/**
 * Calls `work` at every whole multiple of the interval, or `behind_ms` after it, until aborted, never concurrently: a
 * long call skips the next ones. Resolves when the last call has ended. `work` handles its own errors.
 */
export async function onGrid(
  clock: Clock,
  interval_ms: number,
  signal: AbortSignal,
  work: (at_ms: number) => Promise<void>,
  behind_ms = 0,
): Promise<void> {
  for (;;) {
    const at_ms = (Math.floor((clock.now() - behind_ms) / interval_ms) + 1) * interval_ms + behind_ms;
    await clock.sleep(at_ms - clock.now(), signal).catch(() => undefined);
    if (signal.aborted) return;
    // A timer may fire slightly early, and a wall clock may be set back: both wait again.
    if (clock.now() >= at_ms) await work(at_ms);
  }
}
