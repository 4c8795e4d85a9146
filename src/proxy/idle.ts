import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { ServiceConfig } from "#machines/config/config-schema.ts";
import type { MachineService } from "#machines/service.ts";
import type { Entry } from "#network/directory.ts";
import { PROXY_LIMITS } from "./limits.ts";
import { type ServiceGroup, serviceGroups } from "./service-groups.ts";

/** A machine's current load, and its last activity (seconds, monotonic). */
export interface Busyness {
  load: number;
  active_at_s: number;
}

interface IdleParts {
  /** Machines of every app with an open port. */
  apps(): Iterable<readonly Entry[]>;
  busyness(machine: Entry): Busyness;
  /** Current concurrency of one service of a machine. */
  load(machine: Entry, internal_port: number): number;
  /** Peak concurrency of that service on all machines since the last call. */
  takePeak(machine: Entry, internal_port: number): number;
  /** Removes a machine from routing and resolves when no worker sends it requests; the result restores it. */
  withdraw(machine: Entry): Promise<() => void>;
  /** Requests agreement from the edge proxies of other processes, and ends that request. */
  others?: { agree(machine: Entry): Promise<boolean>; release(machine_id: string): Promise<void> } | undefined;
  machines: Pick<MachineService, "stop" | "suspend">;
  idle_s: number;
  clock: Clock;
  log: Log;
}

type Rest = "stop" | "suspend";

/** The autostop setting of one service. */
function autostopOf({ autostop }: ServiceConfig): Rest | undefined {
  if (autostop === "suspend") return "suspend";
  return autostop === true || autostop === "stop" ? "stop" : undefined;
}

/** The autostop action of a machine: the gentlest one of its services, or none. */
export function restOf({ config }: Pick<Entry, "config">): Rest | undefined {
  const wishes = (config.services ?? []).map(autostopOf);
  if (wishes.length === 0 || wishes.includes(undefined)) return undefined;
  return wishes.includes("suspend") ? "suspend" : "stop";
}

/** Peak concurrency of a service during a time with an unchanged set of machines. */
interface Window {
  since_s: number;
  peak: number;
  /** Peak of the previous window; unknown until there was one. */
  before: number;
  running: string;
  /** Length in multiples of `idle_s`; it grows when a machine was stopped too early. */
  length: number;
  /** Number of machines before the last one was stopped as excess; none otherwise. */
  stopped_at: number;
}

/** Length of the next window: longer when the last stop was premature. */
function backoff(known: Window | undefined, serving: number): Pick<Window, "length" | "stopped_at"> {
  if (!known) return { length: 1, stopped_at: 0 };
  const again = known.stopped_at > 0 && serving >= known.stopped_at;
  return again
    ? { length: Math.min(2 * known.length, PROXY_LIMITS.excess_windows), stopped_at: 0 }
    : { length: known.length, stopped_at: known.stopped_at };
}

interface Decision {
  machine: Entry;
  how: Rest;
  reason: string;
}

/**
 * Stops or suspends idle machines. A machine is removed from routing first and stopped only if no request reached it
 * meanwhile, so none is cut off; a request that arrives then waits and starts it again.
 */
export class IdleWatch {
  readonly #parts: IdleParts;
  readonly #windows = new Map<string, Window>();
  readonly #busy = new Set<string>();

  constructor(parts: IdleParts) {
    this.#parts = parts;
  }

  /** Checks all machines once; resolves when the resulting actions are done. */
  async look(): Promise<void> {
    const seen = new Set<string>();
    const decisions = [...this.#parts.apps()].flatMap((machines) => {
      const groups = serviceGroups(machines);
      for (const { key } of groups) seen.add(key);
      return this.#decide(machines, groups);
    });
    for (const key of this.#windows.keys()) if (!seen.has(key)) this.#windows.delete(key);
    await Promise.all(decisions.map((decision) => this.#rest(decision)));
  }

  /** A machine may be stopped when all of its services can spare it. */
  #decide(machines: readonly Entry[], groups: readonly ServiceGroup[]): Decision[] {
    const now_s = Math.floor(this.#parts.clock.monotonic() / 1000);
    this.#measure(groups, now_s);
    const stopping = new Set<string>();
    const idle = machines.filter((machine) => {
      const own = groups.filter((group) => group.has(machine));
      const { load, active_at_s } = this.#parts.busyness(machine);
      if (!this.#mayRest(machine, own) || load > 0 || now_s - active_at_s < this.#parts.idle_s) return false;
      if (!own.every((group) => group.keepsMinimum(machine, stopping))) return false;
      stopping.add(machine.id);
      return true;
    });
    const decided = idle.flatMap((machine) => {
      const idle_s = now_s - this.#parts.busyness(machine).active_at_s;
      const how = restOf(machine);
      return how ? [{ machine, how, reason: `no request or connection for ${idle_s} s (autostop ${how})` }] : [];
    });
    return decided.length > 0 ? decided : this.#excess(groups, now_s);
  }

  #mayRest(machine: Entry, own: readonly ServiceGroup[]): boolean {
    const { state, cordoned, leased, id } = machine;
    if (state !== "started" || cordoned || leased || this.#busy.has(id)) return false;
    return own.length > 0 && restOf(machine) !== undefined;
  }

  /** Records the concurrency of each service, in a window that restarts when machines are added or removed. */
  #measure(groups: readonly ServiceGroup[], now_s: number): void {
    const peaks = new Map<string, number>();
    const peakAt = (machine: Entry, port: number): number => {
      const key = `${machine.id} ${port}`;
      const peak = peaks.get(key) ?? this.#parts.takePeak(machine, port);
      peaks.set(key, peak);
      return peak;
    };
    for (const { key, members, serving } of groups) {
      const load = members.reduce((sum, { machine, port }) => sum + this.#parts.load(machine, port), 0);
      const peak = Math.max(load, ...members.map(({ machine, port }) => peakAt(machine, port)));
      const running = serving.map(({ machine }) => machine.id).join(" ");
      const known = this.#windows.get(key);
      if (known?.running === running) known.peak = Math.max(known.peak, peak);
      else {
        const began = { since_s: now_s, peak, before: Number.POSITIVE_INFINITY, running };
        this.#windows.set(key, { ...began, ...backoff(known, serving.length) });
      }
    }
  }

  /** When a service needed fewer machines for a whole window, the least busy one is stopped. */
  #excess(groups: readonly ServiceGroup[], now_s: number): Decision[] {
    const ended = groups.filter((group) => this.#endWindow(group, now_s));
    const stopping = new Set<string>();
    return ended.flatMap((group) => {
      const least = group.serving
        .filter(({ machine }) => !stopping.has(machine.id) && this.#spares(groups, machine, stopping))
        .sort((a, b) => this.#parts.load(a.machine, a.port) - this.#parts.load(b.machine, b.port))[0];
      const how = least && restOf(least.machine);
      if (!how) return [];
      stopping.add(least.machine.id);
      const window = this.#windows.get(group.key);
      if (window) window.stopped_at = group.serving.length;
      return [{ machine: least.machine, how, reason: this.#excessReason(group, how) }];
    });
  }

  /** Whether a service's window is over; then the next one begins. */
  #endWindow({ key, serving }: ServiceGroup, now_s: number): boolean {
    const window = this.#windows.get(key);
    if (!window || now_s - window.since_s < this.#parts.idle_s * window.length) return false;
    // The service did not need the machine that was stopped.
    const length = serving.length < window.stopped_at ? Math.max(1, window.length / 2) : window.length;
    this.#windows.set(key, { ...window, since_s: now_s, peak: 0, before: window.peak, length });
    return true;
  }

  /** Whether every service of a machine has enough capacity without it. */
  #spares(groups: readonly ServiceGroup[], machine: Entry, stopping: ReadonlySet<string>): boolean {
    const own = groups.filter((group) => group.has(machine));
    return (
      this.#mayRest(machine, own) &&
      own.every(
        (group) => group.keepsMinimum(machine, stopping) && this.#peak(group) <= group.capacity(machine, stopping),
      )
    );
  }

  /** Peak of this window and the previous one. */
  #peak({ key }: ServiceGroup): number {
    const { peak, before } = this.#windows.get(key) ?? { peak: 0, before: Number.POSITIVE_INFINITY };
    return Math.max(peak, before);
  }

  #excessReason(group: ServiceGroup, how: Rest): string {
    const count = group.serving.length;
    const limits = [...new Set(group.serving.map(({ soft }) => soft))].join(", ");
    const seconds = this.#parts.idle_s * (this.#windows.get(group.key)?.length ?? 1);
    return `${count - 1} of ${count} machines were enough for ${group.name} for ${seconds} s (at most ${this.#peak(group)} at once, soft limit ${limits}; autostop ${how})`;
  }

  async #rest({ machine, how, reason }: Decision): Promise<void> {
    const { machines, withdraw, busyness, others, clock, log } = this.#parts;
    this.#busy.add(machine.id);
    const putBack = await withdraw(machine);
    try {
      await this.#quiet(machine);
      if (busyness(machine).load > 0 || (others && !(await others.agree(machine)))) return;
      const asker = { name: "the proxy", source: "proxy" as const, reason, ids: randomIds(clock) };
      if (how === "suspend") await machines.suspend(machine.id, asker);
      else await machines.stop(machine.id, {}, asker);
    } catch (thrown) {
      // Leased, or changed just now: the next check decides again.
      if (!(thrown instanceof ApiError)) log.warn({ error: thrown, machine: machine.id }, "autostop failed");
    } finally {
      await others?.release(machine.id).catch(() => {});
      putBack();
      this.#busy.delete(machine.id);
    }
  }

  /** Waits a limited time for requests in progress. */
  async #quiet(machine: Entry): Promise<void> {
    const { clock, busyness } = this.#parts;
    for (let i = 0; i < QUIET_LOOKS && busyness(machine).load > 0; i++) await clock.sleep(QUIET_LOOK_MS);
  }
}

const QUIET_LOOKS = 100;
const QUIET_LOOK_MS = 100;
