import { messageOf } from "#core/assert.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Slots } from "#core/slots.ts";
import { Timers } from "#core/timers.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { ExitNotice, RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";
import type { Machine, Operation } from "../types.ts";
import { begin, fail, finish, isFull, stays } from "./outcomes.ts";
import { clear, type Outcome, PHASES, type PhaseParts, type PhaseWork, refOf, stopHow } from "./phases.ts";
import { exitEvent, restartDelay, restartsSoFar } from "./restart.ts";
import type { SerialQueue } from "./serial-queue.ts";
import { DEADLINES_MS, isPersistent } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";
import { type MachineUpdate, type MachineWriter, topics, type Work } from "./writer.ts";

interface ExecutorParts extends Pick<PhaseParts, "secrets" | "egress"> {
  host_ids: readonly string[];
  store: MachineStore;
  writer: MachineWriter;
  driver: RuntimeDriver;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  log: Log;
  /** Whether the host can be reached; operations of one that cannot wait. */
  reachable(host_id: string): boolean;
}

const SUPERSEDED = "superseded";
const LATE = "late";
const CLOSED = "closed";

/**
 * Carries out what is written down. It takes a machine's operations one after the other, does each with the driver and
 * writes the outcome; different machines go side by side. It keeps nothing that it could not read again: after a crash
 * it looks at the unfinished operations and at what really runs, and brings the two together.
 */
export class Executor {
  readonly #parts: ExecutorParts;
  readonly #timers: Timers;
  readonly #queues = new Map<string, SerialQueue>();
  /** Boots that should be there, as last written. */
  readonly #running = new Map<string, Machine>();
  readonly #slots = new Slots(MACHINE_LIMITS.operations_parallel);
  readonly #ends: (() => void)[] = [];
  #closed = false;
  problem: string | undefined = "it was not started yet";

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  /** Takes up what was left, then listens. Resolves when everything that was left is known, not when it is done. */
  async start(): Promise<void> {
    const { host_ids, bus, driver } = this.#parts;
    for (const id of host_ids) this.#ends.push(bus.subscribe(topics.host(id), (update) => this.#onUpdate(update)));
    this.#ends.push(driver.onExit((notice) => this.#exited(notice)));
    await this.resync();
    this.#timers.set("reconcile", MACHINE_LIMITS.reconcile_ms, () => void this.#reconcileAgain());
  }

  /** Looks at everything anew: at the start, and when a host comes back that others may have changed meanwhile. */
  async resync(): Promise<void> {
    const alive = await this.#parts.store.alive(this.#parts.host_ids);
    this.#running.clear();
    for (const machine of alive) {
      this.#remember(machine);
      // A state that passes without an operation that ends it: not ours to explain, but it must not last.
      if (!isPersistent(machine.state) && machine.pending === 0) this.wake(machine.id);
    }
    await this.#reconcile();
    await this.#wakeUnfinished();
  }

  /** Word of them may have been lost, or come when the host was not ours for a moment. */
  async #wakeUnfinished(): Promise<void> {
    for (const id of await this.#parts.store.unfinished(this.#parts.host_ids)) this.wake(id);
    this.problem = undefined;
  }

  /** Ends driver calls in progress without writing an outcome: the operations are taken up at the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const end of this.#ends) end();
    this.#timers.close();
    for (const lane of this.#queues.values()) lane.abort?.abort(CLOSED);
    // A lane that waits for a store that does not answer is not waited for: what it would write is not written.
    const ended = Promise.all([...this.#queues.values()].map((lane) => lane.done));
    await Promise.race([ended, this.#parts.clock.sleep(MACHINE_LIMITS.close_ms)]);
  }

  /** Breaks off what is being done, without an outcome. */
  interrupt(): void {
    for (const lane of this.#queues.values()) lane.abort?.abort(SUPERSEDED);
  }

  /** Nothing to do, as far as is known. */
  get idle(): boolean {
    return this.#queues.size === 0;
  }

  /** Whether something is being done to the machine. */
  busy(id: string): boolean {
    return this.#queues.has(id);
  }

  wake(id: string): void {
    if (this.#closed) return;
    const lane = this.#queues.get(id);
    if (lane) {
      lane.again = true;
      return;
    }
    const fresh: SerialQueue = { exits: [], again: true, own_revision: 0, abort: undefined, done: Promise.resolve() };
    this.#queues.set(id, fresh);
    fresh.done = this.#run(id, fresh);
  }

  #onUpdate({ machine }: MachineUpdate): void {
    this.#remember(machine);
    const lane = this.#queues.get(machine.id);
    if (lane?.own_revision === machine.revision) return;
    // Destroying overtakes everything: what is being done for an operation that is gone is not worth finishing.
    if (lane && machine.state === "destroying") lane.abort?.abort(SUPERSEDED);
    if (machine.pending > 0) this.wake(machine.id);
  }

  #remember(machine: Machine): void {
    if (machine.boot === null) this.#running.delete(machine.id);
    else this.#running.set(machine.id, machine);
  }

  #exited(notice: ExitNotice): void {
    if (this.#closed) return;
    this.wake(notice.id);
    const lane = this.#queues.get(notice.id);
    if (lane && lane.exits.length < MACHINE_LIMITS.operations_waiting) lane.exits.push(notice);
  }

  async #run(id: string, lane: SerialQueue): Promise<void> {
    // The caller goes on first: an exit that woke this lane is put in it before it is looked at.
    await Promise.resolve();
    try {
      while (!this.#closed && (lane.again || lane.exits.length > 0)) {
        lane.again = false;
        while (lane.exits[0]) {
          await this.#settleExit(lane, lane.exits[0]);
          lane.exits.shift();
        }
        await this.#work(id, lane);
      }
    } catch (thrown) {
      // The store could not be asked or told. What is written down stands, and is taken up again.
      if (!this.#closed) this.#parts.log.warn({ error: thrown, machine: id }, "an operation will be tried again");
      this.#timers.set(`retry:${id}`, MACHINE_LIMITS.retry_ms, () => {
        for (const exit of lane.exits) this.#exited(exit);
        this.wake(id);
      });
    } finally {
      this.#queues.delete(id);
    }
  }

  /** Carries out the machine's operations until none is left that may be done now. */
  async #work(id: string, lane: SerialQueue): Promise<void> {
    const { store, reachable } = this.#parts;
    let read: Work | undefined;
    while (!this.#closed) {
      // What we wrote ourselves need not be read again, unless somebody else was there too.
      if (lane.again) read = undefined;
      lane.again = false;
      const work: Work | undefined = read ?? (await store.findWork(id));
      if (!work || !reachable(work.machine.host_id)) return;
      const [operation] = work.operations;
      if (!operation) {
        if (isPersistent(work.machine.state)) return;
        read = await this.#write(
          lane,
          work,
          (transaction) => transaction.operations.length === 0 && fail(transaction, "no operation is left"),
        );
        continue;
      }
      if (this.#mustWait(operation)) return;
      read = await this.#slots.use(() => this.#step(work, operation, lane));
    }
  }

  /** A restart by the policy comes later: an alarm is set for it. */
  #mustWait({ id, machine_id, not_before }: Operation): boolean {
    if (not_before === null) return false;
    const wait_ms = Math.min(not_before - this.#parts.clock.now(), MACHINE_LIMITS.restart_delay_max_ms);
    if (wait_ms > 0) this.#timers.set(`later:${machine_id}`, wait_ms, () => this.#due(machine_id, id));
    return wait_ms > 0;
  }

  /** The time of a waiting operation has come, whatever the wall clock says. */
  #due(id: string, operation_id: string): void {
    const write = this.#parts.writer.change(id, (transaction) => {
      const operation = transaction.operations.find((one) => one.id === operation_id);
      if (!operation || operation.not_before === null) return false;
      transaction.put({ ...operation, not_before: null });
      return true;
    });
    write.then(
      () => this.wake(id),
      () => this.#timers.set(`later:${id}`, MACHINE_LIMITS.retry_ms, () => this.wake(id)),
    );
  }

  /** One step of one operation; answers what is there afterwards, or undefined when that must be read. */
  async #step(work: Work, operation: Operation, lane: SerialQueue): Promise<Work | undefined> {
    // Something happened while we waited for our turn.
    if (this.#closed || lane.again) return undefined;
    const { machine } = work;
    if (!operation.begun) return await this.#write(lane, work, (transaction) => begin(transaction, operation));
    // Where there is no phase its state says it is done; only the operation was left.
    const phase = PHASES[machine.state];
    if (!phase) return await this.#write(lane, work, (transaction) => finish(transaction, operation));
    const outcome = await this.#perform(phase, machine, operation, lane);
    if (outcome === undefined) return undefined;
    const settled = this.#write(lane, work, (transaction) => {
      const current = transaction.operations[0];
      // Overtaken meanwhile: what was done is undone by what overtook it.
      if (current?.id !== operation.id || transaction.machine.state !== machine.state) return false;
      if (outcome(transaction) === "finished") transaction.finish(current);
      if (transaction.operations.length === 0) this.#complete(transaction);
      return true;
    });
    if (operation.payload.move_to === undefined) return await settled;
    return await settled.catch((thrown: unknown) => {
      if (!isFull(thrown)) throw thrown;
      return this.#write(lane, work, (transaction) => stays(transaction, operation, messageOf(thrown)));
    });
  }

  /** Calls the driver within the state's time. Undefined when it is not to be written down. */
  async #perform(
    phase: PhaseWork,
    machine: Machine,
    operation: Operation,
    lane: SerialQueue,
  ): Promise<Outcome | undefined> {
    const { clock } = this.#parts;
    const abort = new AbortController();
    lane.abort = abort;
    const timer = `deadline:${machine.id}`;
    const grace = stopHow(machine, operation).timeout_ms + (DEADLINES_MS[machine.state] ?? 0);
    const extend = (): void => {
      // Not for one that is over: its timer would end what comes next.
      if (lane.abort === abort) this.#timers.set(timer, grace, () => abort.abort(LATE));
    };
    extend();
    try {
      const work = phase(this.#parts, { machine, operation, signal: abort.signal, extend, now: clock.now() });
      return await Promise.race([work, this.#afterAbort(abort.signal, work)]);
    } catch (thrown) {
      // A host that is no longer ours tells nothing about its machines.
      const ours = this.#parts.reachable(machine.host_id);
      if (this.#closed || !ours || abort.signal.reason === SUPERSEDED) return undefined;
      const late = abort.signal.reason === LATE;
      const reason = late ? `${machine.state} took longer than ${grace / 1000} s` : messageOf(thrown);
      // Neither is the machine's failure: both are tried again.
      if (machine.state === "destroying" || thrown instanceof StoreError) throw new Error(reason, { cause: thrown });
      return (transaction) => {
        fail(transaction, reason);
        return "finished";
      };
    } finally {
      this.#timers.cancel(timer);
      lane.abort = undefined;
    }
  }

  /** A driver that does not heed the abort is left behind after a while; what it may still do is found by `recover`. */
  async #afterAbort(signal: AbortSignal, work: Promise<unknown>): Promise<never> {
    work.catch(() => {});
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    if (signal.reason !== CLOSED) await this.#parts.clock.sleep(MACHINE_LIMITS.abort_grace_ms).catch(() => {});
    throw new Error("the driver did not stop in time");
  }

  /** A machine that has nothing more to do and destroys itself when it is done. */
  #complete(transaction: MachineTransaction): void {
    if (transaction.machine.state !== "stopped" || !transaction.machine.config.auto_destroy) return;
    transaction.begin(transaction.queue("destroy", { source: "policy", reason: "auto_destroy" }));
  }

  async #settleExit(lane: SerialQueue, notice: ExitNotice): Promise<void> {
    const work = await this.#parts.store.findWork(notice.id);
    if (work?.machine.boot === notice.boot)
      await this.#write(lane, work, (transaction) => this.#ended(transaction, notice));
  }

  /** A boot ended by itself: written down, and the restart policy decides how it goes on. */
  #ended(transaction: MachineTransaction, exit: ExitNotice): boolean {
    const { machine } = transaction;
    if (machine.boot !== exit.boot || (machine.state !== "started" && machine.state !== "suspended")) return false;
    if (machine.state === "suspended") {
      // Its memory is gone; the next start is a cold one.
      transaction.set({ snapshot: false, boot: null, handle: null, private_ipv4: null });
      return true;
    }
    const restarts = restartsSoFar(machine, exit);
    const delay = transaction.operations.length > 0 ? undefined : restartDelay(machine, exit, restarts);
    const restarting = delay !== undefined;
    clear(transaction);
    transaction.transition("exited", "host", {
      exit_event: exitEvent(exit, { requested_stop: false, restarting }),
      restart_count: restarts,
    });
    transaction.set({ restarts: restarting ? restarts + 1 : restarts });
    if (restarting) {
      transaction.begin(transaction.queue("restart", { source: "policy" }, this.#parts.clock.now() + delay));
    } else if (transaction.operations.length === 0) {
      this.#complete(transaction);
    }
    return true;
  }

  async #write(
    lane: SerialQueue,
    work: Work,
    decide: (transaction: MachineTransaction) => boolean,
  ): Promise<Work | undefined> {
    try {
      const written = await this.#parts.writer.work(
        work.machine.id,
        (transaction) => {
          lane.own_revision = transaction.machine.revision + 1;
          return decide(transaction);
        },
        work,
      );
      this.#remember(written.machine);
      return written;
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === "not_found") return undefined;
      throw thrown;
    }
  }

  async #reconcileAgain(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#reconcile();
      await this.#wakeUnfinished();
    } catch (error) {
      this.problem = "what there is to do could not be found out";
      this.#parts.log.warn({ error }, this.problem);
    }
    this.#timers.set("reconcile", MACHINE_LIMITS.reconcile_ms, () => void this.#reconcileAgain());
  }

  /** Brings what is written down and what really runs together. */
  async #reconcile(): Promise<void> {
    const { driver, clock } = this.#parts;
    const known = [...this.#running.values()].flatMap((machine) => refOf(machine) ?? []);
    for (const { id, boot, state, exit } of await driver.recover(known)) {
      const machine = this.#running.get(id);
      if (machine?.boot === boot) {
        const gone = state === "gone" || (state === "frozen") !== (machine.state === "suspended");
        const how = exit ?? { exit_code: -1, signal: -1, oom_killed: false, exited_at: clock.now() };
        if (gone && isPersistent(machine.state)) this.#exited({ id, boot, ...how });
      } else if (!this.#queues.has(id) && state !== "gone") {
        await this.#removeStray(id, boot);
      }
    }
  }

  /** Something runs that nobody asked for: left behind by a crash between doing and writing. */
  async #removeStray(id: string, boot: string): Promise<void> {
    const { store, driver, log } = this.#parts;
    const machine = await store.find(id);
    if (machine && (machine.boot === boot || machine.pending > 0)) return;
    log.warn({ machine: id, boot }, "removing a container that is not in the database");
    const abort = new AbortController();
    this.#timers.set(`stray:${id}`, DEADLINES_MS.destroying ?? 0, () => abort.abort(LATE));
    const work =
      !machine || machine.state === "destroyed"
        ? driver.destroy(id, abort.signal)
        : driver.stop({ id, boot, handle: null }, { signal: "SIGKILL", timeout_ms: 0 }, abort.signal);
    try {
      await Promise.race([work, this.#afterAbort(abort.signal, work)]);
    } catch (error) {
      // It is found again next time; the others are not kept waiting for it.
      log.warn({ error, machine: id, boot }, "it could not be removed");
    } finally {
      this.#timers.cancel(`stray:${id}`);
    }
  }
}
