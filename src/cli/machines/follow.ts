import type { Machine } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { styled } from "../terminal-text.ts";
import type { Context } from "../verb.ts";
import { type Found, readMachine } from "./find.ts";

export interface EventLine {
  timestamp: number;
  type: string;
  status: string;
  source: string;
  machine_id: string;
  machine_name: string;
  app_name: string;
  request?: Record<string, unknown>;
}

/** One event for a person. */
export function eventText({ timestamp, type, status, source, request }: EventLine): string {
  const why = request ? reasonOf(request) : "";
  return `${new Date(timestamp).toISOString()}  ${type.padEnd(8)} ${status.padEnd(10)} by ${source}${why}`;
}

function reasonOf(request: Record<string, unknown>): string {
  const exit = request["exit_event"] as ExitWords | undefined;
  const how = exit && `exit code ${exit.exit_code}${oomText(exit)}`;
  const reasons = [how, request["error"] ?? request["reason"]].filter((text) => typeof text === "string");
  return reasons.length > 0 ? `: ${reasons.join(", ")}` : "";
}

interface ExitWords {
  exit_code?: number;
  oom_killed?: boolean;
  oom?: { process: string; memory: string };
}

function oomText({ oom_killed, oom }: ExitWords): string {
  if (!oom_killed) return "";
  const whose = oom?.memory === "host" ? ", the host is out of memory" : ", out of memory";
  return oom ? `${whose} (${oom.process} was killed)` : whose;
}

/**
 * Does `work`, then waits until the machine is in one of the states, and prints its events on stderr meanwhile. The
 * wait decides; the events are only for display.
 */
export async function andWait(
  context: Context,
  found: Found,
  states: readonly string[],
  work: () => Promise<unknown>,
): Promise<Machine> {
  const started = systemClock.monotonic();
  const watching = new AbortController();
  const { app_name, machine_id } = found.params;
  const before = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/events", {
    params: found.params,
    query: { limit: 1 },
  });
  void printEvent(context, app_name, machine_id, before[0]?.timestamp ?? 0, started, watching.signal);
  try {
    await work();
    // A short-lived machine may have stopped again before the first poll.
    await waitFor(context, found, [...states, "failed", "settled"]);
    const machine = await readMachine(context, found);
    if (!states.includes(machine.state) && machine.state === "failed") throw failed(machine);
    return machine;
  } finally {
    watching.abort();
  }
}

async function waitFor({ client }: Context, { params }: Found, states: readonly string[]): Promise<void> {
  for (;;) {
    const machine = await client.call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {} });
    try {
      const query = { state: [...states], instance_id: machine.instance_id, timeout: "60" };
      await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", { params, query });
      return;
    } catch (thrown) {
      // A long transition takes several waits; a destroyed machine reaches no further state.
      if (thrown instanceof ClientError && thrown.http === 408) continue;
      if (thrown instanceof ClientError && thrown.http === 404 && states.includes("destroyed")) return;
      throw thrown;
    }
  }
}

/** The state of a machine, with the reason if its events have one. */
export function stateText({ state, events }: Machine): string {
  const [event] = events;
  return `${state}${state !== "started" && event?.request ? reasonOf(event.request) : ""}`;
}

function failed(machine: Machine): ClientError {
  return new ClientError(500, {
    error: `machine ${machine.id} ${stateText(machine)}`,
    hint: `hangar machines events ${machine.id}`,
  });
}

async function printEvent(
  { client, say }: Context,
  app_name: string,
  id: string,
  since: number,
  started: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    const events = client.stream<"GET /v1/apps/:app_name/events", EventLine>("GET /v1/apps/:app_name/events", {
      params: { app_name },
      query: {},
      signal,
    });
    for await (const event of events) {
      if (event.machine_id !== id || event.timestamp < since) continue;
      const seconds = ((systemClock.monotonic() - started) / 1000).toFixed(1);
      say(
        `${styled("dim", `${seconds.padStart(5)} s`)}  ${event.type} ${event.status}${event.request ? reasonOf(event.request) : ""}`,
      );
    }
  } catch {
    // No events are printed then; the wait continues.
  }
}
