import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { ServiceConfig } from "#machines/config-schema.ts";
import type { MachineService } from "#machines/service.ts";
import type { Entry } from "#network/directory.ts";
import { DEFAULT_SOFT } from "./exposure.ts";

/** How busy a machine is: what it does now, and when it last did anything (seconds, monotonic). */
export interface Busyness {
  load: number;
  active_at_s: number;
}

interface IdleParts {
  /** Machines of every app that is open. */
  apps(): Iterable<readonly Entry[]>;
  busyness(machine: Entry): Busyness;
  /** Takes a machine out of the routing, and answers when no worker sends it anything more; then puts it back. */
  withdraw(machine: Entry): Promise<() => void>;
  /** Whether the front doors of other processes let it rest, and the end of that. */
  others?: { agree(machine: Entry): Promise<boolean>; release(machine_id: string): Promise<void> } | undefined;
  machines: Pick<MachineService, "stop" | "suspend">;
  idle_s: number;
  clock: Clock;
  log: Log;
}

type Rest = "stop" | "suspend";

/** What becomes of a service's machine when nobody asks for it. */
function autostopOf({ autostop }: ServiceConfig): Rest | undefined {
  if (autostop === "suspend") return "suspend";
  return autostop === true || autostop === "stop" ? "stop" : undefined;
}

/** What becomes of a machine: nothing, unless a service says so; the gentlest of what they say. */
export function restOf({ config }: Pick<Entry, "config">): Rest | undefined {
  const wishes = (config.services ?? []).map(autostopOf);
  if (wishes.length === 0 || wishes.includes(undefined)) return undefined;
  return wishes.includes("suspend") ? "suspend" : "stop";
}

const minimumOf = ({ config }: Pick<Entry, "config">): number =>
  Math.max(0, ...(config.services ?? []).map(({ min_machines_running }) => min_machines_running ?? 0));

/** Where an app is at home: where its machines are told it is, else where the oldest one is. */
function primaryRegion(machines: readonly Entry[]): string | undefined {
  const told = machines.map(({ config }) => config.env?.["PRIMARY_REGION"]).find((region) => region);
  const oldest = machines.reduce<Entry | undefined>((a, b) => (a && a.created_at <= b.created_at ? a : b), undefined);
  return told ?? oldest?.region;
}

interface Decision {
  machine: Entry;
  how: Rest;
  reason: string;
}

/**
 * Puts machines to rest that nobody asks for. A machine is taken out of the routing first and stopped only if
 * nothing reached it meanwhile, so no request is cut off by it; one that comes just then waits, and wakes it.
 */
export class IdleWatch {
  readonly #parts: IdleParts;
  /** The most an app had to do at once, and since when that is looked at. */
  readonly #peaks = new Map<string, { since_s: number; load: number; running: number }>();
  readonly #busy = new Set<string>();

  constructor(parts: IdleParts) {
    this.#parts = parts;
  }

  /** One look at everything; resolves when what it decided is done. */
  async look(): Promise<void> {
    const decisions = [...this.#parts.apps()].flatMap((machines) => this.#decide(machines));
    await Promise.all(decisions.map((decision) => this.#rest(decision)));
  }

  #decide(machines: readonly Entry[]): Decision[] {
    const now_s = Math.floor(this.#parts.clock.monotonic() / 1000);
    const running = machines.filter(({ state, cordoned }) => state === "started" && !cordoned);
    const home = primaryRegion(machines);
    let at_home = running.filter(({ region }) => region === home).length;
    const decided: Decision[] = [];
    for (const machine of running) {
      const how = restOf(machine);
      const minimum = minimumOf(machine);
      const idle_s = now_s - this.#parts.busyness(machine).active_at_s;
      if (!how || machine.leased || this.#busy.has(machine.id)) continue;
      if (this.#parts.busyness(machine).load > 0 || idle_s < this.#parts.idle_s) continue;
      if (machine.region === home && at_home <= minimum) continue;
      if (machine.region === home) at_home--;
      decided.push({ machine, how, reason: `no request or connection for ${idle_s} s (autostop ${how})` });
    }
    return decided.length > 0 ? decided : this.#excess(running, home, now_s);
  }

  /** More machines than the load needed for a whole while: the least busy one goes. */
  #excess(running: readonly Entry[], home: string | undefined, now_s: number): Decision[] {
    const [first] = running;
    if (!first) return [];
    const load = running.reduce((sum, machine) => sum + this.#parts.busyness(machine).load, 0);
    const known = this.#peaks.get(first.app_id);
    const peak = known?.running === running.length ? known : { since_s: now_s, load: 0, running: running.length };
    peak.load = Math.max(peak.load, load);
    this.#peaks.set(first.app_id, peak);
    if (now_s - peak.since_s < this.#parts.idle_s) return [];
    this.#peaks.set(first.app_id, { since_s: now_s, load: 0, running: running.length });
    const soft = Math.min(...running.map(softLimit));
    const enough = Math.max(1, Math.ceil(peak.load / soft));
    const least = running
      .filter((machine) => restOf(machine) && !machine.leased && !this.#busy.has(machine.id))
      .sort((a, b) => this.#parts.busyness(a).load - this.#parts.busyness(b).load)[0];
    const at_home = running.filter(({ region }) => region === home).length;
    const how = least && restOf(least);
    if (!how || running.length <= enough || (least.region === home && at_home <= minimumOf(least))) return [];
    const seconds = this.#parts.idle_s;
    const reason = `${enough} of ${running.length} machines were enough for ${seconds} s (at most ${peak.load} at once, soft limit ${soft}; autostop ${how})`;
    return [{ machine: least, how, reason }];
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
      // Leased, or just being changed: the next look decides anew.
      if (!(thrown instanceof ApiError)) log.warn({ error: thrown, machine: machine.id }, "autostop failed");
    } finally {
      await others?.release(machine.id).catch(() => {});
      putBack();
      this.#busy.delete(machine.id);
    }
  }

  /** What it still does may end, within a while. */
  async #quiet(machine: Entry): Promise<void> {
    const { clock, busyness } = this.#parts;
    for (let i = 0; i < QUIET_LOOKS && busyness(machine).load > 0; i++) await clock.sleep(QUIET_LOOK_MS);
  }
}

const QUIET_LOOKS = 100;
const QUIET_LOOK_MS = 100;

const softLimit = ({ config }: Entry): number =>
  Math.min(...(config.services ?? []).map(({ concurrency }) => concurrency?.soft_limit || DEFAULT_SOFT), 2 ** 31);
