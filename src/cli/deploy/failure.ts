/** Why a machine of a deploy failed: its exit, checks and log, read before the rollback destroys the machine. */
import { setTimeout } from "node:timers/promises";
import type { Machine } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { count } from "#core/words.ts";
import { type Exit, exitOf, type FailingCheck, failingChecks } from "./health.ts";
import type { Place } from "./place.ts";

const LOG_LINES = 20;
/** The last log lines may arrive shortly after the exit. */
const LOG_TRIES = 4;
const LOG_AGAIN_MS = 250;

export interface MachineFailure {
  machine_id: string;
  name: string;
  state: string;
  reason: string;
  exit?: Exit;
  /** Of a task that ended with the deploy; its log stays. */
  run_id?: string;
  /** Failing checks. */
  checks: FailingCheck[];
  /** Its last log lines. */
  logs: { timestamp: number; stream: string; message: string }[];
}

/** The machine that made a deploy fail. `--json` prints `machine`. */
export class MachineFailed extends ClientError {
  readonly machine: MachineFailure;

  constructor(error: string, machine: MachineFailure) {
    super(0, { error, machine });
    this.machine = machine;
  }
}

/** `launch` is the machine as created or updated. */
export async function machineFailed(
  place: Place,
  launch: Machine,
  {
    what = `machine ${launch.name} (${launch.id})`,
    reason,
    run_id,
  }: { what?: string; reason: string; run_id?: string },
): Promise<MachineFailed> {
  const { context, app_name } = place;
  const params = { app_name, machine_id: launch.id };
  // A destroyed machine has no more details.
  const now = await context.client
    .call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {} })
    .catch(() => launch);
  const logs = await lastLines(place, now).catch(() => []);
  const exit = now.events.map(exitOf).find((found) => found?.requested_stop === false);
  return new MachineFailed(`${what}: ${reason}`, {
    machine_id: launch.id,
    name: launch.name,
    state: now.state,
    reason,
    ...(exit ? { exit: { exit_code: exit.exit_code, signal: exit.signal, oom_killed: exit.oom_killed } } : {}),
    ...(run_id === undefined ? {} : { run_id }),
    checks: failingChecks(now.checks),
    logs,
  });
}

/** Only of its last run, because earlier lines may be of another version. */
async function lastLines({ context, app_name }: Place, { id, events }: Machine): Promise<MachineFailure["logs"]> {
  const start = events.find(({ status }) => status === "starting");
  const since = start ? { since: new Date(start.timestamp).toISOString() } : {};
  for (let tries = 1; ; tries++) {
    const { lines } = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/logs", {
      params: { app_name, machine_id: id },
      query: { tail: LOG_LINES, ...since },
    });
    if (lines.length > 0 || tries === LOG_TRIES)
      return lines.map(({ timestamp, stream, message }) => ({ timestamp, stream, message }));
    await setTimeout(LOG_AGAIN_MS);
  }
}

/** The failure for display; log lines are marked. */
export function failureText({ message, machine }: MachineFailed): string {
  const checks = machine.checks.map(({ name, status, output }) => `  check ${name} is ${status}: ${output}`);
  const written = machine.logs.map((line) => `  | ${line.message}`);
  const head =
    written.length === 0 ? "  it wrote nothing to its log" : `  its last ${count(written.length, "log line")}:`;
  const kept = machine.run_id === undefined ? [] : [`  all of it: hangar runs logs ${machine.run_id}`];
  return [`Failed: ${message}`, ...checks, head, ...written, ...kept].join("\n");
}
