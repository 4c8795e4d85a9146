/** One drain on this host: reads the logs of its machines in batches, sends them in order, and stores how far it got. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Slots } from "#core/slots.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import type { LogQueue, LostLines } from "../queue.ts";
import { sendWhole } from "./send-whole.ts";
import type { DrainSender, Sending } from "./sender.ts";
import type { DrainStore } from "./store.ts";
import type { Drain, DrainLine, DrainMachine, DrainState } from "./types.ts";

export interface DeliveryParts {
  queue: LogQueue;
  store: Pick<DrainStore, "putState">;
  sender: Pick<DrainSender, "send">;
  /** What is needed to send; or why nothing is sent. */
  prepare(drain: Drain): Promise<Omit<Sending, "kind"> | string>;
  /** Shared by all drains of the process. */
  slots: Slots;
  clock: Clock;
  log: Log;
}

interface Batch {
  lines: DrainLine[];
  /** By machine: where its next batch begins. */
  positions: Map<string, string>;
  lost: LostLines;
  /** Everything was read. */
  is_all: boolean;
}

export class Delivery {
  readonly drain: Drain;
  readonly #parts: DeliveryParts;
  readonly #positions = new Map<string, string | undefined>();
  /** Machines whose log was read to its end, and its mark then. */
  readonly #ends = new Map<string, string>();
  #state: DrainState;
  #saved_at = 0;
  #is_unsaved = false;
  #retry_at = 0;
  #running: Promise<void> | undefined;
  #stopped = false;
  /** Rotates, so that a machine that writes much does not keep the others waiting. */
  #turn = 0;

  constructor(drain: Drain, state: DrainState, parts: DeliveryParts) {
    this.drain = drain;
    this.#state = state;
    this.#parts = parts;
  }

  /** Begins to send what is there, unless it is being sent or a failure is backed off from. */
  wake(machines: readonly DrainMachine[]): void {
    if (this.#running || this.#stopped || this.#parts.clock.now() < this.#retry_at) return;
    this.#forgetDeleted(machines);
    this.#running = this.#parts.slots
      .use(() => this.#run(machines))
      .catch((error: unknown) => {
        this.#parts.log.warn({ error, drain: this.drain.id }, "a log drain failed");
        this.#ends.clear();
        this.#failed(messageOf(error));
      })
      .finally(() => {
        this.#running = undefined;
      });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    if (this.#is_unsaved) await this.#save().catch(() => {});
  }

  async #run(machines: readonly DrainMachine[]): Promise<void> {
    while (!this.#stopped) {
      const batch = await this.#collect(machines);
      if (batch.lines.length > 0) {
        this.#change({ oldest_at: Math.min(...oldestOf(batch.lines)) });
        if (!(await this.#send(batch.lines))) {
          // What was read was not sent.
          for (const id of batch.positions.keys()) this.#ends.delete(id);
          break;
        }
      }
      // Only now: a batch that failed is read again, with the gaps in it.
      this.#lose(batch.lost);
      await this.#keep(batch.positions);
      if (batch.is_all) {
        if (this.#state.oldest_at !== null) this.#change({ oldest_at: null });
        break;
      }
      await this.#saveSometimes();
    }
    await this.#saveSometimes();
  }

  async #collect(machines: readonly DrainMachine[]): Promise<Batch> {
    const batch: Batch = { lines: [], positions: new Map(), lost: { gaps: 0, bytes: 0 }, is_all: true };
    let size = 0;
    for (let index = 0; index < machines.length; index++) {
      const machine = machines[(this.#turn + index) % machines.length] as DrainMachine;
      const mark = this.#parts.queue.mark(machine.id);
      if (this.#ends.get(machine.id) === mark) continue;
      size += await this.#page(machine, mark, batch);
      if (size < MACHINE_LIMITS.drain_batch_bytes) continue;
      this.#turn = (this.#turn + index + 1) % machines.length;
      batch.is_all = false;
      break;
    }
    return batch;
  }

  /** Adds a machine's next lines; returns their size. */
  async #page(machine: DrainMachine, mark: string, batch: Batch): Promise<number> {
    const { queue } = this.#parts;
    const { id } = machine;
    if (!this.#positions.has(id)) this.#positions.set(id, await queue.position(id, this.drain.id));
    const position = this.#positions.get(id);
    const page = await queue.read(id, position === undefined ? { since: this.drain.since } : { position });
    if (page.is_end) this.#ends.set(id, mark);
    else batch.is_all = false;
    if (page.lost) batch.lost = { gaps: batch.lost.gaps + page.lost.gaps, bytes: batch.lost.bytes + page.lost.bytes };
    if (page.position !== position) batch.positions.set(id, page.position);
    let size = 0;
    for (const line of page.lines) {
      batch.lines.push({ ...line, machine });
      size += line.message.length;
    }
    return size;
  }

  /** Returns false when it must be tried again. */
  async #send(lines: readonly DrainLine[]): Promise<boolean> {
    const { prepare, sender, clock } = this.#parts;
    const { kind } = this.drain;
    const sending = await prepare(this.drain);
    if (typeof sending === "string") return this.#failed(`nothing is sent: ${sending}`);
    const result = await sendWhole((part) => sender.send({ kind, ...sending }, part), lines);
    if (this.#stopped && !result.done) return false;
    if (!result.done) return this.#failed(result.reason, result.retry_after_ms);
    const { sent, refused, reason } = result;
    const before = this.#state;
    if (before.failures > 0) this.#saved_at = 0;
    this.#change({
      sent: before.sent + sent,
      refused: before.refused + refused,
      last_success_at: clock.now(),
      last_error: refused > 0 ? `${refused} lines were refused: ${reason ?? "no reason given"}` : null,
      failures: 0,
    });
    return true;
  }

  #failed(reason: string, retry_after_ms = 0): false {
    const { drain_delay_ms, drain_delay_max_ms, drain_retry_after_ms } = MACHINE_LIMITS;
    const { failures, last_error } = this.#state;
    const wait = Math.min(drain_delay_max_ms, drain_delay_ms * 2 ** Math.min(failures, 20));
    this.#retry_at = this.#parts.clock.now() + Math.max(wait, Math.min(retry_after_ms, drain_retry_after_ms));
    if (failures === 0 || reason !== last_error) this.#saved_at = 0;
    this.#change({ failures: failures + 1, last_error: reason });
    return false;
  }

  /** In memory first: a disk that is full must not have lines sent over and over. */
  async #keep(positions: ReadonlyMap<string, string>): Promise<void> {
    for (const [id, position] of positions) this.#positions.set(id, position);
    for (const [id, position] of positions) await this.#parts.queue.keep(id, this.drain.id, position);
  }

  /** Machines whose logs were deleted as a whole, some before they were sent. */
  #forgetDeleted(machines: readonly DrainMachine[]): void {
    const present = new Set(machines.map(({ id }) => id));
    for (const id of this.#positions.keys()) {
      if (present.has(id)) continue;
      if (!this.#ends.has(id)) this.#lose({ gaps: 1, bytes: 0 });
      this.#positions.delete(id);
      this.#ends.delete(id);
    }
  }

  #lose({ gaps, bytes }: LostLines): void {
    if (gaps === 0) return;
    const { lost_gaps, lost_bytes } = this.#state;
    this.#change({ lost_gaps: lost_gaps + gaps, lost_bytes: lost_bytes + bytes });
    this.#parts.log.warn(
      { drain: this.drain.id, gaps, bytes },
      "log lines were lost before a drain could send them: deleted for age or budget, or written too fast",
    );
  }

  #change(change: Partial<DrainState>): void {
    this.#state = { ...this.#state, ...change };
    this.#is_unsaved = true;
  }

  /** Not for each batch. */
  async saveIfDue(): Promise<void> {
    if (!this.#running) await this.#saveSometimes();
  }

  async #saveSometimes(): Promise<void> {
    if (this.#is_unsaved && this.#parts.clock.now() - this.#saved_at >= MACHINE_LIMITS.drain_state_ms)
      await this.#save();
  }

  async #save(): Promise<void> {
    const now = this.#parts.clock.now();
    this.#state = { ...this.#state, updated_at: now };
    this.#is_unsaved = false;
    this.#saved_at = now;
    if (!(await this.#parts.store.putState(this.#state))) this.#stopped = true;
  }
}

/** The time of each machine's first line. */
function* oldestOf(lines: readonly DrainLine[]): Generator<number> {
  let last: DrainMachine | undefined;
  for (const { machine, timestamp } of lines) {
    if (machine !== last) yield timestamp;
    last = machine;
  }
}
