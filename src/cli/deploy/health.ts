/** Computes the health of a deployed machine from API responses; pure. */
import type { Machine, MachineConfig } from "#client/api.ts";

export type MachineEvent = Machine["events"][number];

export interface Exit {
  exit_code: number;
  signal: number;
  oom_killed: boolean;
  oom?: { process: string };
}

/** Health of a deployed machine: in progress, healthy, idle (autostopped), or failed. */
export interface Health {
  status: "pending" | "passing" | "asleep" | "failed";
  /** For display: the state, and failing checks. */
  text: string;
  /** Why it failed. */
  reason?: string;
}

const OUTPUT_CHARS = 120;

/** `launch` is the machine as created or updated: earlier events do not count. */
export function healthOf(machine: Machine, launch: Pick<Machine, "events">): Health {
  const { state } = machine;
  const events = eventsSince(machine.events, launch.events[0]?.id);
  const exit = events.find(
    (event, at) => isCrash(event) && events.slice(at).some(({ status }) => status === "started"),
  );
  if (exit) return failed(state, exitReason(exit));
  if (state === "failed") return failed(state, errorReason(machine.events) ?? "it failed");
  if (state === "suspended" || state === "stopped") return restHealth(state, events);
  if (state === "destroying" || state === "destroyed") return failed(state, `it was destroyed${bySource(events)}`);
  if (state !== "started") return { status: "pending", text: state };
  return checkHealth(machine);
}

/** Events are newest first. */
function eventsSince(events: readonly MachineEvent[], id: string | undefined): readonly MachineEvent[] {
  const at = events.findIndex((event) => event.id === id);
  return at < 0 ? events : events.slice(0, at);
}

const isCrash = (event: MachineEvent): boolean => exitOf(event)?.requested_stop === false;

const failed = (state: string, reason: string): Health => ({ status: "failed", text: state, reason });

/** Autostop is fine; any other stop fails the deploy. */
function restHealth(state: string, events: readonly MachineEvent[]): Health {
  const requested = events.find(({ source }) => source !== "host");
  if (requested?.source === "proxy") return { status: "asleep", text: `${state} by autostop` };
  // An update stops the machine for a moment.
  const ran = events.some(({ status }) => status === "started");
  return ran ? failed(state, `it was ${state}${bySource(events)}`) : { status: "pending", text: state };
}

function bySource(events: readonly MachineEvent[]): string {
  const source = events.find((event) => event.source !== "host")?.source;
  return source ? ` (by ${source})` : "";
}

function checkHealth({ checks, config }: Machine): Health {
  const expected = checkCount(config as Partial<MachineConfig>);
  const results = Object.entries(checks);
  const passing = results.filter(([, { status }]) => status === "passing").length;
  if (expected === 0) return { status: "passing", text: "started, no checks" };
  if (passing >= expected) return { status: "passing", text: `started, ${passing} of ${expected} checks passing` };
  const others = failingChecks(checks).map(({ name, status, output }) => `${name} ${status}: ${firstLine(output)}`);
  const parts = [`started, ${passing} of ${expected} checks passing`, ...others];
  return { status: "pending", text: parts.join("; ") };
}

function checkCount({ checks = {}, services = [] }: Partial<MachineConfig>): number {
  return Object.keys(checks).length + services.reduce((sum, service) => sum + (service.checks ?? []).length, 0);
}

export interface FailingCheck {
  name: string;
  status: string;
  output: string;
}

export const failingChecks = (checks: Machine["checks"]): FailingCheck[] =>
  Object.entries(checks)
    .filter(([, { status }]) => status !== "passing")
    .map(([name, { status, output }]) => ({ name, status, output }));

const firstLine = (text: string): string => (text.split("\n")[0] ?? "").slice(0, OUTPUT_CHARS);

export function exitOf(event: MachineEvent): (Exit & { requested_stop: boolean }) | undefined {
  return event.request?.["exit_event"] as (Exit & { requested_stop: boolean }) | undefined;
}

/** Why a machine with a one-off command failed; undefined on success. */
export function endReason({ state, events }: Machine): string | undefined {
  const exit = events.find(exitOf);
  if (!exit) return errorReason(events) ?? `it is ${state}`;
  const { exit_code, signal, oom_killed } = exitOf(exit) ?? {};
  return exit_code === 0 && (signal ?? 0) <= 0 && !oom_killed ? undefined : exitReason(exit);
}

function exitReason(event: MachineEvent): string {
  const { exit_code = 0, signal = 0, oom_killed = false, oom } = exitOf(event) ?? {};
  if (oom_killed) return `${oom?.process ?? "its program"} was killed because the machine ran out of memory`;
  if (signal > 0) return `its program was killed by signal ${signal}`;
  return `its program exited with code ${exit_code}`;
}

/** The newest error in the events, which has the cause of a failed start. */
function errorReason(events: readonly MachineEvent[]): string | undefined {
  return events
    .map(({ request }) => request?.["error"] ?? request?.["reason"])
    .find((text): text is string => typeof text === "string");
}
