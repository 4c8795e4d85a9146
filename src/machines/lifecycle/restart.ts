import { MACHINE_LIMITS } from "../limits.ts";
import type { Exit } from "../runtime/driver.ts";
import type { ExitEvent, Machine } from "../types.ts";

/** Delay before the next restart, or undefined when the machine stays down. */
export function restartDelay(machine: Machine, exit: Exit, restarts: number): number | undefined {
  const { restart } = machine.config;
  const policy = restart?.policy || "on-failure";
  const failed = exit.exit_code !== 0 || exit.signal > 0 || exit.oom_killed;
  if (policy === "no" || (policy === "on-failure" && !failed)) return undefined;
  const retries = restart?.max_retries ?? MACHINE_LIMITS.restart_retries;
  if (policy === "on-failure" && restarts >= retries) return undefined;
  const { restart_delay_ms, restart_delay_max_ms } = MACHINE_LIMITS;
  return Math.min(restart_delay_max_ms, restart_delay_ms * 2 ** Math.min(restarts, 16));
}

/** Consecutive restarts; a machine that has run long enough starts again at 0. */
export function restartsSoFar({ restarts, started_at }: Machine, exit: Exit): number {
  const ran_ms = started_at === null ? 0 : exit.exited_at - started_at;
  return ran_ms >= MACHINE_LIMITS.restart_window_ms ? 0 : restarts;
}

export function exitEvent(exit: Exit, requested: { requested_stop: boolean; restarting: boolean }): ExitEvent {
  return {
    exit_code: exit.exit_code,
    guest_exit_code: exit.exit_code,
    signal: exit.signal,
    guest_signal: exit.signal,
    oom_killed: exit.oom_killed,
    ...(exit.oom ? { oom: exit.oom } : {}),
    ...requested,
    exited_at: new Date(exit.exited_at).toISOString(),
  };
}
