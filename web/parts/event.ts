/** Text of events. */
import type { VNode } from "preact";
import type { FleetEvent } from "../fleet.ts";
import { a, span } from "../html.ts";
import { to } from "../router.ts";

interface Told {
  status: string;
  request?: Record<string, unknown> | undefined;
}

/** Details of an event: reason, and exit. */
export function reasonOf({ request = {} }: Told): string {
  const { error, reason, exit_event, restart_count } = request;
  const reasons = [error, reason].filter((text) => typeof text === "string" && text !== "") as string[];
  if (exit_event && typeof exit_event === "object") reasons.push(exitWords(exit_event as Record<string, unknown>));
  if (typeof restart_count === "number" && restart_count > 0) reasons.push(`restart ${restart_count}`);
  return reasons.join(" · ");
}

function exitWords({ exit_code, signal, oom_killed, oom, requested_stop }: Record<string, unknown>): string {
  if (oom_killed === true) return oomWords((oom ?? {}) as Record<string, unknown>);
  const how = typeof signal === "number" && signal > 0 ? `ended by signal ${signal}` : `exit code ${String(exit_code)}`;
  return requested_stop === true ? `${how}, as requested` : how;
}

function oomWords({ process, memory }: Record<string, unknown>): string {
  const what = typeof process === "string" ? `${process} was killed` : "killed";
  return `${what}: ${memory === "host" ? "the host" : "it"} ran out of memory`;
}

export function isBad({ status, request }: Told): boolean {
  if (status === "failed" || typeof request?.["error"] === "string") return true;
  const { exit_code, oom_killed, requested_stop } = (request?.["exit_event"] ?? {}) as Record<string, unknown>;
  return oom_killed === true || (typeof exit_code === "number" && exit_code !== 0 && requested_stop !== true);
}

export function machineLink({ app_name, machine_id, machine_name }: FleetEvent): VNode {
  return span(a({ href: to("machines", app_name, machine_id) }, machine_name), span({ class: "dim" }, ` ${app_name}`));
}
