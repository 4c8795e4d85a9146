import type { Machine, MachineConfig } from "../types.ts";

const HOUR = 3_600_000;
const FIXED_MS: Record<"hourly" | "daily" | "weekly", number> = { hourly: HOUR, daily: 24 * HOUR, weekly: 168 * HOUR };

/**
 * Returns the first time after `now` that is a whole number of intervals after the machine's creation, so missed runs
 * become one run. If the clock was set back before the creation, intervals continue backwards.
 */
export function nextRun(schedule: NonNullable<MachineConfig["schedule"]>, created_at: number, now: number): number {
  if (schedule !== "monthly") {
    const every = FIXED_MS[schedule];
    return created_at + every * (Math.floor((now - created_at) / every) + 1);
  }
  let months = monthOf(now) - monthOf(created_at) - 1;
  while (addMonths(created_at, months) <= now) months++;
  return addMonths(created_at, months);
}

function monthOf(time: number): number {
  const date = new Date(time);
  return 12 * date.getUTCFullYear() + date.getUTCMonth();
}

/**
 * When a machine is due: the stored time, unless it is more than one interval after the next run. Then the wall clock
 * was ahead when it was stored.
 */
export function dueAt({ next_run_at, created_at, config }: Machine, now: number): number | null {
  if (next_run_at === null || !config.schedule) return null;
  const next = nextRun(config.schedule, created_at, now);
  return next_run_at > nextRun(config.schedule, created_at, next) ? next : next_run_at;
}

/** The same day of another month, or the last day of a shorter one. */
function addMonths(from: number, months: number): number {
  const date = new Date(from);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime();
}

export function firstRun(
  schedule: MachineConfig["schedule"],
  { created_at }: { created_at: number },
  now: number,
): number | null {
  return schedule === undefined ? null : nextRun(schedule, created_at, now);
}
