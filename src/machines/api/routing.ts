/** What the machines' routes share: the caller, the machine, and request values that have several forms. */
import { constants } from "node:os";
import type { AppService } from "#apps/service.ts";
import type { Clock } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { HostService } from "#hosts/service.ts";
import { type Admitted, appOf, type Caller } from "#http/access.ts";
import { ALL_SIGNALS } from "../config/config-schema.ts";
import type { Events } from "../events/events.ts";
import type { Waits } from "../events/wait.ts";
import type { Actor } from "../inputs.ts";
import type { Leases } from "../lifecycle/lease.ts";
import type { Metadata } from "../lifecycle/metadata.ts";
import type { Relocation } from "../lifecycle/relocation.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import type { MachineService } from "../service.ts";
import type { MachineStore } from "../store.ts";
import type { Machine } from "../types.ts";
import type { MachineResponses } from "./responses.ts";

export interface RouteParts {
  clock: Clock;
  apps: AppService;
  machines: MachineService;
  leases: Leases;
  waits: Waits;
  metadata: Metadata;
  events: Events;
  relocation: Relocation;
  responses: MachineResponses;
  store: MachineStore;
  hosts: Pick<HostService, "withStatus">;
  driver: RuntimeDriver;
}

export interface EventRouteParts extends RouteParts {
  /** What is being built and deployed in an organization, now and after each change. */
  ongoing(org_id: string, signal: AbortSignal): AsyncIterable<unknown>;
}

interface RouteCall extends Admitted {
  params: { machine_id: string };
  caller: Caller;
  ids: Ids;
  header(name: string): string | undefined;
}

export const NONCE_HEADER = "svc-machine-lease-nonce";

export function actorOf({ caller, ids, header }: Omit<RouteCall, "params">): Actor {
  const nonce = header(NONCE_HEADER);
  return { name: caller.name, ids, ...(nonce ? { nonce } : {}) };
}

export async function machineOf(
  { machines }: Pick<RouteParts, "machines">,
  call: Admitted & { params: { machine_id: string } },
): Promise<Machine> {
  return await machines.get(appOf(call).id, call.params.machine_id);
}

export function bad(path: string, problem: string, allowed?: string): never {
  fail("invalid_request", `${path} ${problem}`, { details: [{ path, problem, ...(allowed ? { allowed } : {}) }] });
}

/** Allowed signals, by their number on this system. */
const NUMBERS = new Map(ALL_SIGNALS.map((name) => [constants.signals[name] as number, name]));

/** Parses a signal: a name with or without SIG, a number, or an object that holds one of these. */
export function parseSignal(value: unknown, path: string): string | undefined {
  if (value === undefined || value === "") return undefined;
  if (typeof value === "number") return NUMBERS.get(value) ?? badSignal(path);
  if (value !== null && typeof value === "object") return parseSignal(Object.values(value)[0], path);
  const upper = String(value as string).toUpperCase();
  const name = upper.startsWith("SIG") ? upper : `SIG${upper}`;
  if (/^SIG\d+$/.test(name)) return NUMBERS.get(Number(name.slice(3))) ?? badSignal(path);
  return ALL_SIGNALS.find((known) => known === name) ?? badSignal(path);
}

const badSignal = (path: string): never => bad(path, "is not a signal", ALL_SIGNALS.join(", "));

/**
 * Parses seconds, given as a number, a numeric string or a text such as `1m30s`, into milliseconds. Some clients send
 * `0s` for "not set".
 */
export function parseTime(value: string | number | undefined, path: string): number | undefined {
  if (value === undefined || value === "" || value === "0s") return undefined;
  if (typeof value === "number") return value * 1000;
  if (/^\d{1,9}(\.\d{1,3})?$/.test(value)) return Number(value) * 1000;
  return parseDuration(value) ?? bad(path, "is not a time", "seconds, or text such as 30s");
}

/** Accepts `a,b` and `a`, `b` as the same list. */
export function listOf(values: readonly string[] | undefined): string[] {
  return (values ?? []).flatMap((value) => value.split(",")).flatMap((value) => value.trim() || []);
}
