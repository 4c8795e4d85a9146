/**
 * Derives runs from a machine's events, so that a run is written in the same transaction as the event it follows from.
 */
import { RUN_KEY, RUN_KIND_KEY } from "#core/run-metadata.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { ExitEvent, Machine, MachineConfig, MachineEvent } from "../types.ts";
import type { Run, RunChange, RunEnd, RunKind } from "./types.ts";

/** Whether each boot of such a machine is recorded as a run. */
export const isTask = ({ schedule, metadata }: MachineConfig): boolean =>
  schedule !== undefined || metadata?.[RUN_KEY] !== undefined;

/** `machine` is as it is after the event. */
export function runChange(machine: Machine, event: MachineEvent, started_by: string): RunChange | undefined {
  if (!isTask(machine.config)) return undefined;
  const { type, status, timestamp, request = {} } = event;
  // A boot that is resumed is the same run.
  if (status === "starting") return machine.boot === null ? { begin: newRun(machine, event, started_by) } : undefined;
  if (request.exit_event) return { end: exited(request.exit_event, timestamp) };
  if (type === "failed") return { end: { ...endOf("failed", timestamp), error: request.error ?? "it failed" } };
  if (status === "stopped" || status === "destroyed") return { end: endOf("stopped", timestamp) };
  return undefined;
}

/** A scheduled start that found the run before it still running. */
export const skippedRun = (machine: Machine, id: string, now: number): Run => ({
  ...newRun(machine, { id, timestamp: now }, "schedule"),
  state: "skipped",
  ended_at: now,
  error: "the run before it had not ended",
});

export const endOf = (state: RunEnd["state"], ended_at: number): RunEnd => ({
  state,
  ended_at,
  exit_code: null,
  signal: null,
  oom_killed: false,
  error: null,
});

function newRun(machine: Machine, { id, timestamp }: Pick<MachineEvent, "id" | "timestamp">, started_by: string): Run {
  const { config, app_id, id: machine_id, name: machine_name, instance_id } = machine;
  const { exec, entrypoint = [], cmd = [] } = config.init ?? {};
  const command = config.metadata?.[RUN_KEY] ?? (exec ?? [...entrypoint, ...cmd]).join(" ");
  return {
    id,
    app_id,
    machine_id,
    machine_name,
    kind: kindOf(config),
    command: command.slice(0, MACHINE_LIMITS.run_command_chars),
    image: config.image,
    instance_id,
    state: "running",
    started_by,
    started_at: timestamp,
    ended_at: null,
    exit_code: null,
    signal: null,
    oom_killed: false,
    error: null,
  };
}

function kindOf({ schedule, metadata }: MachineConfig): RunKind {
  if (schedule !== undefined) return "schedule";
  return metadata?.[RUN_KIND_KEY] === "release" ? "release" : "once";
}

export const EXIT_NOT_SEEN = "its exit was not seen: its host or container was lost";

function exited({ exit_code, signal, oom_killed, requested_stop }: ExitEvent, timestamp: number): RunEnd {
  const known = exit_code >= 0;
  const well = exit_code === 0 && !oom_killed;
  return {
    state: well ? "complete" : requested_stop ? "stopped" : "failed",
    ended_at: timestamp,
    exit_code: known ? exit_code : null,
    signal: signal > 0 ? signal : null,
    oom_killed,
    error: known || requested_stop ? null : EXIT_NOT_SEEN,
  };
}
