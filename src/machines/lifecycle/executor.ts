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
  /** Whether the host can be reached; operations of an unreachable host wait. */
  reachable(host_id: string): boolean;
}

const SUPERSEDED = "superseded";
const LATE = "late";
const CLOSED = "closed";

/**
 * Carries out queued operations: one at a time per machine, many machines in parallel. Each is done with the driver,
 * then its outcome is written. All state can be read again: after a crash the executor reads the unfinished operations,
 * reads from the driver what is running, and reconciles the two.
 */
export class Executor {
  readonly #parts: ExecutorParts;
  readonly #timers: Timers;
  readonly #queues = new Map<string, SerialQueue>();
  /** Boots expected to be running, as last written. */
  readonly #running = new Map<string, Machine>();
  readonly #slots = new Slots(MACHINE_LIMITS.operations_parallel);
  readonly #ends: (() => void)[] = [];
  #closed = false;
  problem: string | undefined = "it was not started yet";

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  /** Resumes unfinished operations, then subscribes. Resolves when they are queued, not when they are done. */
  async start(): Promise<void> {
    const { host_ids, bus, driver } = this.#parts;
    for (const id of host_ids) this.#ends.push(bus.subscribe(topics.host(id), (update) => this.#onUpdate(update)));
    this.#ends.push(driver.onExit((notice) => this.#exited(notice)));
    await this.resync();
    this.#timers.set("reconcile", MACHINE_LIMITS.reconcile_ms, () => void this.#reconcileAgain());
  }

  /** Reads everything again: at start, and when a host's lease returns: others may have changed its machines. */
  async resync(): Promise<void> {
    const alive = await this.#parts.store.alive(this.#parts.host_ids);
    this.#running.clear();
    for (const machine of alive) {
      this.#remember(machine);
      // A transitional state without an operation that ends it is an inconsistency; it must not last.
      if (!isPersistent(machine.state) && machine.pending === 0) this.wake(machine.id);
    }
    await this.#reconcile();
    await this.#wakeUnfinished();
  }

  /** Their notifications may have been lost, or have arrived while the lease was not held. */
  async #wakeUnfinished(): Promise<void> {
    for (const id of await this.#parts.store.unfinished(this.#parts.host_ids)) this.wake(id);
    this.problem = undefined;
  }

  /** Aborts driver calls without writing an outcome; the next start resumes the operations. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const end of this.#ends) end();
    this.#timers.close();
    for (const lane of this.#queues.values()) lane.abort?.abort(CLOSED);
    // Does not wait for a queue that is blocked on the store: its outcome is not written.
    const ended = Promise.all([...this.#queues.values()].map((lane) => lane.done));
    await Promise.race([ended, this.#parts.clock.sleep(MACHINE_LIMITS.close_ms)]);
  }

  /** Aborts driver calls in progress, without an outcome. */
  interrupt(): void {
    for (const lane of this.#queues.values()) lane.abort?.abort(SUPERSEDED);
  }

  /** Whether no operation is known. */
  get idle(): boolean {
    return this.#queues.size === 0;
  }

  /** Whether an operation is running on the machine. */
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
    // A destroy aborts the driver call of an operation that it cancelled.
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
    // Lets the caller finish first: an exit that woke this queue is recorded before the queue reads the machine.
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
      // The store failed. The stored operations remain and are retried.
      if (!this.#closed) this.#parts.log.warn({ error: thrown, machine: id }, "an operation will be tried again");
      this.#timers.set(`retry:${id}`, MACHINE_LIMITS.retry_ms, () => {
        for (const exit of lane.exits) this.#exited(exit);
        this.wake(id);
      });
    } finally {
      this.#queues.delete(id);
    }
  }

  /** Carries out the machine's operations until none is due. */
  async #work(id: string, lane: SerialQueue): Promise<void> {
    const { store, reachable } = this.#parts;
    let read: Work | undefined;
    while (!this.#closed) {
      // Reuses what we wrote ourselves, unless there was another change.
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

  /** Sets a timer for an operation that is not due yet, such as a restart with back-off. */
  #mustWait({ id, machine_id, not_before }: Operation): boolean {
    if (not_before === null) return false;
    const wait_ms = Math.min(not_before - this.#parts.clock.now(), MACHINE_LIMITS.restart_delay_max_ms);
    if (wait_ms > 0) this.#timers.set(`later:${machine_id}`, wait_ms, () => this.#due(machine_id, id));
    return wait_ms > 0;
  }

  /** Runs a delayed operation when its timer fires, whatever the wall clock says. */
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

  /** Runs one step of one operation. Returns the state afterwards, or undefined when it must be read again. */
  async #step(work: Work, operation: Operation, lane: SerialQueue): Promise<Work | undefined> {
    // There was a change while this step waited for a slot.
    if (this.#closed || lane.again) return undefined;
    const { machine } = work;
    if (!operation.begun) return await this.#write(lane, work, (transaction) => begin(transaction, operation));
    // A state without a phase means the work is done; only the operation record remained.
    const phase = PHASES[machine.state];
    if (!phase) return await this.#write(lane, work, (transaction) => finish(transaction, operation));
    const outcome = await this.#perform(phase, machine, operation, lane);
    if (outcome === undefined) return undefined;
    const settled = this.#write(lane, work, (transaction) => {
      const current = transaction.operations[0];
      // Cancelled meanwhile: the operation that cancelled it undoes its effects.
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

  /** Calls the driver within the state's timeout. Returns undefined when there is nothing to write. */
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
      // Not after the call has ended: the timer would abort the next one.
      if (lane.abort === abort) this.#timers.set(timer, grace, () => abort.abort(LATE));
    };
    extend();
    try {
      const work = phase(this.#parts, { machine, operation, signal: abort.signal, extend, now: clock.now() });
      return await Promise.race([work, this.#afterAbort(abort.signal, work)]);
    } catch (thrown) {
      // Without the host's lease, the outcome of its machines is unknown.
      const ours = this.#parts.reachable(machine.host_id);
      if (this.#closed || !ours || abort.signal.reason === SUPERSEDED) return undefined;
      const late = abort.signal.reason === LATE;
      const reason = late ? `${machine.state} took longer than ${grace / 1000} s` : messageOf(thrown);
      // Neither is a failure of the machine: both are retried.
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

  /** Abandons a driver call that ignores the abort after a grace period; `recover` finds what it may still do. */
  async #afterAbort(signal: AbortSignal, work: Promise<unknown>): Promise<never> {
    work.catch(() => {});
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    if (signal.reason !== CLOSED) await this.#parts.clock.sleep(MACHINE_LIMITS.abort_grace_ms).catch(() => {});
    throw new Error("the driver did not stop in time");
  }

  /** Destroys a finished machine that has `auto_destroy`. */
  #complete(transaction: MachineTransaction): void {
    if (transaction.machine.state !== "stopped" || !transaction.machine.config.auto_destroy) return;
    transaction.begin(transaction.queue("destroy", { source: "policy", reason: "auto_destroy" }));
  }

  async #settleExit(lane: SerialQueue, notice: ExitNotice): Promise<void> {
    const work = await this.#parts.store.findWork(notice.id);
    if (work?.machine.boot === notice.boot)
      await this.#write(lane, work, (transaction) => this.#ended(transaction, notice));
  }

  /** Records that a boot exited by itself; the restart policy decides what follows. */
  #ended(transaction: MachineTransaction, exit: ExitNotice): boolean {
    const { machine } = transaction;
    if (machine.boot !== exit.boot || (machine.state !== "started" && machine.state !== "suspended")) return false;
    if (machine.state === "suspended") {
      // The memory snapshot is lost, so the next start is cold.
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

  /** Reconciles the stored state with what the driver reports. */
  async #reconcile(): Promise<void> {
    const { driver, clock } = this.#parts;
    const known = [...this.#running.values()].flatMap((machine) => refOf(machine) ?? []);
    for (const { id, boot, state, exit } of await driver.recover(known)) {
      const machine = this.#running.get(id);
      if (machine?.boot === boot) {
        const ended = state === "gone" || (state === "frozen") !== (machine.state === "suspended");
        const how = exit ?? { exit_code: -1, signal: -1, oom_killed: false, exited_at: clock.now() };
        if (ended && isPersistent(machine.state)) this.#exited({ id, boot, ...how });
      } else if (!this.#queues.has(id) && state !== "gone") {
        await this.#removeStray(id, boot);
      }
    }
  }

  /** Removes a boot that is not in the store, left by a crash between the driver call and the write. */
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
      // The next reconciliation finds it again; the others do not wait for it.
      log.warn({ error, machine: id, boot }, "it could not be removed");
    } finally {
      this.#timers.cancel(`stray:${id}`);
    }
  }
}
