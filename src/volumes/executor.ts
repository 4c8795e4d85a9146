import { messageOf } from "#core/assert.ts";
import { StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { Slots } from "#core/slots.ts";
import { Timers } from "#core/timers.ts";
import { DamagedSnapshot } from "./backup/restore-image.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { type Operation, type OperationKind, queueOf, type Volume } from "./types.ts";
import { type Outcome, WORK, type WorkParts } from "./work.ts";
import { type Decision, transition, type VolumeWriter } from "./writer.ts";

interface ExecutorParts extends WorkParts {
  host_ids: readonly string[];
  writer: VolumeWriter;
  log: Log;
  /** Notifies other processes of new and finished operations. */
  notifier?: Notifier;
}

export interface Progress {
  done_bytes: number;
  total_bytes: number;
}

/** Attempts by kind; what a request waits for fails at once. */
const TRIES: Record<OperationKind, number> = {
  create: 1,
  extend: 1,
  fork: VOLUME_LIMITS.tries,
  restore: VOLUME_LIMITS.tries,
  snapshot: VOLUME_LIMITS.tries,
  move: VOLUME_LIMITS.tries,
  clear: Number.POSITIVE_INFINITY,
};

/**
 * Carries out queued operations: one at a time per queue, queues in parallel. All state can be read again, so after a
 * crash it begins with the unfinished operations.
 */
export class VolumeExecutor {
  readonly #parts: ExecutorParts;
  readonly #timers: Timers;
  readonly #queues = new Map<string, Promise<void>>();
  /** Queues that were woken while running. */
  readonly #again = new Set<string>();
  /** Storing snapshots takes long, so it has slots of its own. */
  readonly #slots = {
    volumes: new Slots(VOLUME_LIMITS.operations_parallel),
    snapshots: new Slots(VOLUME_LIMITS.operations_parallel),
  };
  readonly #progress = new Map<string, Progress>();
  /** Waiters for an operation, by volume. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #closing = new AbortController();
  readonly #ends: (() => void)[] = [];

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  async start(): Promise<void> {
    const { notifier } = this.#parts;
    if (notifier) {
      this.#ends.push(notifier.listen("volumes", (id) => this.#onNotification(id)));
      this.#ends.push(notifier.onGap(() => void this.#resync()));
      this.#lookLater();
    }
    await this.#runUnfinished();
  }

  async #runUnfinished(): Promise<void> {
    const { store, host_ids } = this.#parts;
    for (const id of await store.unfinished(host_ids)) this.#run(id);
  }

  /** Notifications may be lost, so operations are also polled. */
  #lookLater(): void {
    this.#timers.set("look", VOLUME_LIMITS.shared_look_ms, () => {
      void this.#resync();
      this.#lookLater();
    });
  }

  async #resync(): Promise<void> {
    try {
      await this.#runUnfinished();
    } catch (error) {
      this.#parts.log.warn({ error }, "unfinished operations of volumes could not be read");
    }
  }

  /** A volume changed in another process: there may be work for us, or an operation that a request here waits for. */
  #onNotification(volume_id: string): void {
    this.#run(volume_id);
    this.#publish(volume_id);
  }

  /** Aborts running operations; the next start resumes them. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the platform is shutting down"));
    this.#timers.close();
    for (const end of this.#ends.splice(0)) end();
    const ended = Promise.all(this.#queues.values());
    await Promise.race([ended, this.#parts.clock.sleep(VOLUME_LIMITS.close_ms)]);
  }

  get idle(): boolean {
    return this.#queues.size === 0;
  }

  /** Number of volumes with waiters; tests use it to find leaks. */
  get awaited(): number {
    return this.#watchers.size;
  }

  /** Progress of a restore, or of storing a snapshot. */
  progress(id: string): Progress | undefined {
    return this.#progress.get(id);
  }

  wake(volume_id: string): void {
    this.#parts.notifier?.send("volumes", volume_id);
    this.#run(volume_id);
  }

  #run(volume_id: string): void {
    for (const lane of [volume_id, queueOf({ volume_id, kind: "snapshot" })]) {
      if (this.#closing.signal.aborted) return;
      if (this.#queues.has(lane)) this.#again.add(lane);
      else this.#queues.set(lane, this.#runQueue(volume_id, lane));
    }
  }

  /** Resolves when the operation has ended; false after the timeout. */
  async ended(volume_id: string, operation_id: string): Promise<boolean> {
    const { store, clock } = this.#parts;
    const until = clock.monotonic() + VOLUME_LIMITS.answer_ms;
    while (clock.monotonic() < until && !this.#closing.signal.aborted) {
      const heard = Promise.withResolvers<void>();
      const end = this.#watch(volume_id, heard.resolve);
      try {
        const work = await store.findWork(volume_id);
        if (!work?.operations.some(({ id }) => id === operation_id)) return true;
        // Also polled: another process may carry it out.
        await Promise.race([heard.promise, clock.sleep(VOLUME_LIMITS.look_ms)]);
      } finally {
        end();
      }
    }
    return false;
  }

  #watch(volume_id: string, watcher: () => void): () => void {
    const watchers = this.#watchers.get(volume_id) ?? new Set();
    this.#watchers.set(volume_id, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.#watchers.delete(volume_id);
    };
  }

  #publish(volume_id: string): void {
    for (const watcher of this.#watchers.get(volume_id) ?? []) watcher();
  }

  async #runQueue(volume_id: string, lane: string): Promise<void> {
    const slots = this.#slots[lane === volume_id ? "volumes" : "snapshots"];
    try {
      do {
        this.#again.delete(lane);
        while (await slots.use(() => this.#step(volume_id, lane)));
      } while (this.#again.has(lane) && !this.#closing.signal.aborted);
    } catch (thrown) {
      if (!this.#closing.signal.aborted) {
        this.#parts.log.warn({ error: thrown, volume: volume_id }, "an operation will be tried again");
        this.#timers.set(`retry:${lane}`, VOLUME_LIMITS.retry_ms, () => this.wake(volume_id));
      }
    } finally {
      this.#queues.delete(lane);
      if (this.#again.delete(lane)) this.wake(volume_id);
    }
  }

  /** Runs the first operation of the queue; false when there is none or it must wait. */
  async #step(volume_id: string, lane: string): Promise<boolean> {
    if (this.#closing.signal.aborted) return false;
    const work = await this.#parts.store.findWork(volume_id);
    // Operations of other hosts are done there.
    const { host_ids } = this.#parts;
    const operation = work?.operations.find((one) => queueOf(one) === lane && host_ids.includes(one.host_id));
    if (!work || !operation) return false;
    const outcome = await this.#perform(work.volume, operation);
    if (outcome === undefined) return false;
    await this.#parts.writer.change(volume_id, ({ volume, operations }) => {
      // Cancelled meanwhile, with its purpose.
      if (!operations.some(({ id }) => id === operation.id)) return undefined;
      return { ...outcome(volume), remove_operations: [operation.id] };
    });
    this.#publish(volume_id);
    this.#parts.notifier?.send("volumes", volume_id);
    return true;
  }

  async #perform(volume: Volume, operation: Operation): Promise<Outcome | undefined> {
    const { signal } = this.#closing;
    const about = operation.kind === "snapshot" ? (operation.payload.snapshot_id ?? "") : volume.id;
    const onProgress = (done_bytes: number, total_bytes: number): void =>
      void this.#progress.set(about, { done_bytes, total_bytes });
    try {
      return await WORK[operation.kind](this.#parts, { volume, operation, signal, onProgress });
    } catch (thrown) {
      if (signal.aborted) return undefined;
      // A store failure does not count as an attempt of the operation.
      if (thrown instanceof StoreError) throw thrown;
      return await this.#failed(volume, operation, thrown);
    } finally {
      this.#progress.delete(about);
    }
  }

  /** Retries later, or records the failure. */
  async #failed(volume: Volume, operation: Operation, thrown: unknown): Promise<Outcome | undefined> {
    const { log, writer } = this.#parts;
    const tries = operation.tries + 1;
    const facts = { error: thrown, volume: volume.id, operation: operation.kind, tries };
    log.warn(facts, "an operation of a volume failed");
    if (tries >= TRIES[operation.kind] || thrown instanceof DamagedSnapshot) {
      return await this.#giveUp(operation, messageOf(thrown));
    }
    await writer.change(volume.id, ({ operations }) =>
      operations.some(({ id }) => id === operation.id) ? { put_operations: [{ ...operation, tries }] } : undefined,
    );
    const wait = Math.min(VOLUME_LIMITS.retry_ms * 2 ** (tries - 1), VOLUME_LIMITS.retry_max_ms);
    this.#timers.set(`retry:${queueOf(operation)}`, wait, () => this.wake(volume.id));
    return undefined;
  }

  async #giveUp(operation: Operation, error: string): Promise<Outcome> {
    const { store, disk, clock } = this.#parts;
    const now = clock.now();
    if (operation.kind === "snapshot" || operation.kind === "move") {
      const snapshot = await store.findSnapshot(operation.payload.snapshot_id ?? "");
      await disk.dropPoint(operation.payload.snapshot_id ?? "");
      const failed = snapshot && {
        ...snapshot,
        status: "failed" as const,
        message: error,
        updated_at: now,
        finished_at: now,
      };
      const stays = (volume: Volume): Decision => ({ set: { state: transition(volume, "broke"), error } });
      return (volume) => ({
        ...(failed ? { put_snapshots: [failed] } : {}),
        ...(operation.kind === "move" ? stays(volume) : {}),
      });
    }
    return (volume): Decision => ({
      set: {
        state: transition(volume, "broke"),
        error,
        ...(operation.kind === "extend" ? { size_gb: operation.payload.from_gb ?? volume.size_gb } : {}),
        // It was never visible to a client, so it is deleted.
        ...(operation.kind === "create" ? { deleted_at: now, purge_at: now } : {}),
      },
    });
  }
}
