import type { Clock } from "#core/clock.ts";

/**
 * Calls `work` at every whole multiple of the interval, or `behind_ms` after it, until aborted, never twice at once: a
 * call that lasts longer makes the next ones fall out. Answers when the last call has ended. `work` deals with its own
 * errors.
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
    // A timer may fire a moment early, and a wall clock may have been set back: both wait again.
    if (clock.now() >= at_ms) await work(at_ms);
  }
}
