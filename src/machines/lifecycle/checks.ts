import { messageOf } from "#core/assert.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { configDuration } from "#core/durations.ts";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import type { CheckConfig } from "../config/config-schema.ts";
import { checksOf } from "../config/configured-checks.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";
import type { CheckStatus, Machine } from "../types.ts";
import { refOf } from "./phases.ts";
import { type MachineUpdate, type MachineWriter, topics } from "./writer.ts";

interface CheckParts {
  host_ids: readonly string[];
  store: MachineStore;
  writer: MachineWriter;
  driver: RuntimeDriver;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  log: Log;
}

/** Runs the checks of running machines and stores changed results only. */
export class CheckRunner {
  readonly #parts: CheckParts;
  readonly #timers: Timers;
  readonly #ends: (() => void)[] = [];
  /** The boot being checked, by machine. */
  readonly #boots = new Map<string, { boot: string; instance_id: string; names: string[] }>();
  /** When a check's output was last stored without a change of status, on the monotonic clock. */
  readonly #output_written = new Map<string, number>();
  readonly #closing = new AbortController();
  readonly #looking = new Set<Promise<void>>();

  constructor(parts: CheckParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  async start(): Promise<void> {
    const { host_ids, bus, store } = this.#parts;
    for (const id of host_ids) this.#ends.push(bus.subscribe(topics.host(id), ({ machine }) => this.#follow(machine)));
    for (const machine of await store.alive(host_ids)) this.#follow(machine);
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end();
    this.#timers.close();
    this.#closing.abort();
    await Promise.race([Promise.all(this.#looking), this.#parts.clock.sleep(MACHINE_LIMITS.close_ms)]);
  }

  #follow(machine: Machine): void {
    const { id, boot, instance_id, state } = machine;
    const before = this.#boots.get(id);
    const runs = state === "started" && boot !== null;
    if (runs && before?.boot === boot && before.instance_id === instance_id) return;
    for (const name of before?.names ?? []) {
      this.#timers.cancel(`${id}/${name}`);
      this.#output_written.delete(`${id}/${name}`);
    }
    this.#boots.delete(id);
    const checks = runs ? checksOf(machine) : [];
    if (boot === null || checks.length === 0) return;
    this.#boots.set(id, { boot, instance_id, names: checks.map(([name]) => name) });
    for (const [name, check] of checks) {
      const grace = configDuration(check.grace_period) ?? 0;
      this.#timers.set(`${id}/${name}`, grace, () => this.#begin(machine, name, check));
    }
  }

  #begin(machine: Machine, name: string, check: CheckConfig): void {
    const probe = this.#look(machine, name, check);
    this.#looking.add(probe);
    void probe.then(() => this.#looking.delete(probe));
  }

  async #look(machine: Machine, name: string, check: CheckConfig): Promise<void> {
    const { log } = this.#parts;
    try {
      const result = await this.#probe(machine, check);
      await this.#write(machine, name, result);
    } catch (error) {
      if (!this.#closing.signal.aborted) log.warn({ error, machine: machine.id }, "a check could not be run");
    }
    if (this.#boots.get(machine.id)?.boot !== machine.boot) return;
    const every = configDuration(check.interval) ?? MACHINE_LIMITS.check_interval_ms;
    const wait = Math.max(every, MACHINE_LIMITS.check_interval_min_ms);
    this.#timers.set(`${machine.id}/${name}`, wait, () => this.#begin(machine, name, check));
  }

  async #probe(machine: Machine, check: CheckConfig): Promise<{ passing: boolean; output: string }> {
    const { driver, clock } = this.#parts;
    const ref = refOf(machine);
    if (!ref) return { passing: false, output: "nothing runs" };
    const late = new AbortController();
    const timeout = configDuration(check.timeout) || MACHINE_LIMITS.check_timeout_ms;
    const stop = AbortSignal.any([late.signal, this.#closing.signal]);
    const expired = clock.sleep(timeout, stop).then(
      () => ({ passing: false, output: `no answer within ${timeout / 1000} s` }),
      () => ({ passing: false, output: "the platform is shutting down" }),
    );
    const probed = driver
      .probe(ref, check, stop)
      .catch((thrown: unknown) => ({ passing: false, output: messageOf(thrown) }));
    const result = await Promise.race([probed, expired]);
    late.abort();
    return result;
  }

  async #write(
    { id, boot }: Machine,
    name: string,
    { passing, output }: { passing: boolean; output: string },
  ): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const status: CheckStatus["status"] = passing ? "passing" : "critical";
    const text = output.slice(0, MACHINE_LIMITS.check_output_chars);
    try {
      await this.#parts.writer.change(id, (transaction) => {
        const { machine } = transaction;
        const before = machine.checks[name];
        if (machine.boot !== boot || machine.state !== "started") return false;
        const changed = before?.status !== status;
        if (!changed && (before.output === text || !this.#mayWriteOutput(`${id}/${name}`))) return false;
        const updated_at = changed ? this.#parts.clock.now() : before.updated_at;
        transaction.set({ checks: { ...machine.checks, [name]: { status, output: text, updated_at } } });
        return true;
      });
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.code !== "not_found") throw thrown;
    }
  }

  /** Limits how often a changing output is stored, for example one that contains a timestamp. */
  #mayWriteOutput(check: string): boolean {
    const now = this.#parts.clock.monotonic();
    const last = this.#output_written.get(check) ?? Number.NEGATIVE_INFINITY;
    if (now - last < MACHINE_LIMITS.check_output_ms) return false;
    this.#output_written.set(check, now);
    return true;
  }
}
