/**
 * One state for an app, from its machines: what `hangar status`, the dashboard and the API show. It is computed here
 * alone, so that a failing check is never shown as a healthy app elsewhere.
 */
import { count } from "#core/words.ts";
import type { ExitEvent, Machine } from "./types.ts";

/** `starting`: nothing serves yet, and nothing has failed. `empty`: it has no machines. */
export type AppState = "healthy" | "degraded" | "down" | "asleep" | "starting" | "empty";

export interface MachineFailure {
  machine_id: string;
  machine_name: string;
  reason: string;
}

export interface AppHealth {
  state: AppState;
  /** One sentence: why it is in this state. */
  reason: string;
  /** Machines that fail, each with its reason. */
  failures: MachineFailure[];
}

export type HealthInput = Pick<Machine, "id" | "name" | "state" | "cordoned" | "checks" | "events" | "config">;

type Condition = "serving" | "failing" | "starting" | "asleep" | "gone";

const CONDITIONS: Record<Machine["state"], Condition> = {
  created: "asleep",
  starting: "starting",
  started: "serving",
  stopping: "asleep",
  stopped: "asleep",
  suspending: "asleep",
  suspended: "asleep",
  restarting: "starting",
  replacing: "starting",
  failed: "failing",
  destroying: "gone",
  destroyed: "gone",
};

/**
 * A machine that was restarted after a crash counts as failing for this long, so that a crash loop is never healthy.
 */
const CRASH_RECENT_MS = 60_000;

/** `problems`: why requests to a machine fail although it runs, by machine id. */
export function appHealth(
  machines: readonly HealthInput[],
  now: number,
  problems: ReadonlyMap<string, string> = new Map(),
): AppHealth {
  const failures: MachineFailure[] = [];
  const counts: Record<Condition, number> = { serving: 0, failing: 0, starting: 0, asleep: 0, gone: 0 };
  for (const machine of machines) {
    const reason = failureOf(machine, now, problems);
    counts[reason === undefined ? CONDITIONS[machine.state] : "failing"] += 1;
    if (reason !== undefined) failures.push({ machine_id: machine.id, machine_name: machine.name, reason });
  }
  const all = machines.length - counts.gone;
  return { ...stateOf(counts, all, failures, machines), failures };
}

function stateOf(
  counts: Readonly<Record<Condition, number>>,
  all: number,
  [first]: readonly MachineFailure[],
  machines: readonly HealthInput[],
): Pick<AppHealth, "state" | "reason"> {
  if (all === 0) return { state: "empty", reason: "it has no machines" };
  if (first) {
    const failing = `${counts.failing} of ${count(all, "machine")} ${counts.failing === 1 ? "fails" : "fail"}`;
    const reason = `${failing}: ${first.machine_name}: ${first.reason}`;
    return { state: counts.serving > 0 ? "degraded" : "down", reason };
  }
  if (counts.serving > 0) return { state: "healthy", reason: `${count(counts.serving, "machine")} running` };
  if (counts.starting > 0) return { state: "starting", reason: `${count(counts.starting, "machine")} starting` };
  const wakes = machines.some(({ config }) => config.services?.some(({ autostart }) => autostart === true));
  const how = wakes ? "a request starts one" : "no request starts one; `hangar machines start` does";
  return { state: "asleep", reason: `${count(all, "machine")} stopped or suspended; ${how}` };
}

/** Why a machine fails; undefined when it does not. */
function failureOf(machine: HealthInput, now: number, problems: ReadonlyMap<string, string>): string | undefined {
  const { id, state, checks, events } = machine;
  if (state === "failed") return lastReason(events) ?? "it failed";
  if (state === "started") {
    if (machine.cordoned) return undefined;
    const [name, check] = Object.entries(checks).find(([, { status }]) => status === "critical") ?? [];
    if (check) return `check ${name} is critical: ${firstLine(check.output) || "no output"}`;
    const crash = problems.get(id) === undefined ? crashOf(events, now - CRASH_RECENT_MS) : undefined;
    return crash ? `${crash}; restarted` : problems.get(id);
  }
  // A machine that is about to start again after a crash is not asleep, and a crashed one is not either.
  return state === "stopped" || state === "restarting" || state === "starting" ? crashOf(events, 0) : undefined;
}

const USER_STARTS = new Set(["start", "launch", "restart", "update"]);

/** Why its last run ended, when that was no stop, and after `since`. */
function crashOf(events: HealthInput["events"], since: number): string | undefined {
  // Newest first. A start that a user requested resets the history.
  for (const { type, source, timestamp, request } of events) {
    if (timestamp < since) return undefined;
    if (request?.exit_event) return request.exit_event.requested_stop ? undefined : exitReason(request.exit_event);
    if (source === "user" && USER_STARTS.has(type)) return undefined;
  }
  return undefined;
}

function exitReason({ exit_code, signal, oom_killed, oom }: ExitEvent): string | undefined {
  if (oom_killed) return `${oom?.process ?? "its program"} was killed: out of memory`;
  if (signal > 0) return `its program was ended by signal ${signal}`;
  return exit_code === 0 ? undefined : `its program ended with exit code ${exit_code}`;
}

function lastReason(events: HealthInput["events"]): string | undefined {
  for (const { request } of events) {
    const text = request?.error ?? request?.reason ?? (request?.exit_event && exitReason(request.exit_event));
    if (text) return firstLine(text);
  }
  return undefined;
}

const firstLine = (text: string): string => text.trim().split("\n")[0]?.slice(0, 300) ?? "";
