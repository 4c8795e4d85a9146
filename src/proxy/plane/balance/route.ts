import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import type { AppTable, PortTable, StartableMachine } from "../../table.ts";
import type { EdgeCounters } from "../counters.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import { PathRoutes } from "../path-routes.ts";
import type { Statics } from "../static/statics.ts";
import type { PendingRequest, Refusal, TargetConstraint } from "./pending-request.ts";
import type { TargetState, WorkerContext } from "./target.ts";

const suits = (constraint: TargetConstraint | undefined, { machine_id, region }: StartableMachine): boolean =>
  !constraint ||
  ((constraint.machine_id ?? machine_id) === machine_id &&
    (constraint.region ?? region) === region &&
    constraint.not !== machine_id);

/**
 * One exposed port of one app in one worker: chooses a machine and queues requests. It picks the least loaded machine
 * within its soft limit, then the least loaded within its hard limit, and among equals the least recently picked by any
 * worker (round robin). Requests without a machine wait in the queue, up to a limit and a timeout.
 */
export class Route {
  readonly app: AppTable;
  readonly table: PortTable;
  readonly targets: readonly TargetState[];
  readonly counters: EdgeCounters;
  /** Identifies the port within its app. */
  readonly key: string;
  /** Static files, served without a machine. */
  readonly statics: Statics;
  /** The routes that the app wants counted, if any. */
  readonly paths: PathRoutes | undefined;
  readonly #context: WorkerContext;
  readonly #requestStart: (reason: string, machine_id?: string) => void;
  #queue: PendingRequest[] = [];
  /** Requests pinned to certain machines; they do not block others. */
  #pinned: PendingRequest[] = [];
  #polling = false;
  #asked_at = Number.NEGATIVE_INFINITY;
  #announced = 0;
  #looked_at = 0;
  readonly #serve = (): void => this.serve();

  constructor(parts: {
    app: AppTable;
    table: PortTable;
    targets: readonly TargetState[];
    counters: EdgeCounters;
    statics: Statics;
    floor: WorkerContext;
    requestStart(reason: string, machine_id?: string): void;
  }) {
    const { protocol, start, end } = parts.table;
    this.key = `${protocol}/${start}-${end}`;
    this.app = parts.app;
    this.table = parts.table;
    this.targets = parts.targets;
    this.counters = parts.counters;
    this.statics = parts.statics;
    const { routes } = parts.table.options;
    this.paths = routes.length === 0 ? undefined : new PathRoutes(routes);
    this.#context = parts.floor;
    this.#requestStart = parts.requestStart;
    for (const target of this.targets) target.onRoom.add(this.#serve);
  }

  /** Calls `got` or `refused`, now or later. */
  obtain(pending: PendingRequest): void {
    pending.since = this.#context.now();
    if ((pending.constraint || this.#queue.length === 0) && this.#try(pending)) return;
    const refusal = this.#rejectReason(pending);
    if (refusal) {
      pending.refused(refusal);
      return;
    }
    this.#enqueue(pending);
  }

  /** Gives targets to queued requests, in order, while there is capacity. */
  serve(): void {
    const pinned = this.#pinned;
    this.#pinned = [];
    for (const pending of pinned) if (!pending.aborted && !this.#try(pending)) this.#pinned.push(pending);
    while (this.#queue.length > 0) {
      const [first] = this.#queue as [PendingRequest];
      if (!first.aborted && this.#othersTurn()) break;
      if (!first.aborted && !this.#try(first)) break;
      this.#queue.shift();
    }
    this.#announce();
  }

  /** A new table is in force: queued requests move to the new route. */
  handOver(to: Route): void {
    for (const pending of this.close()) to.#enqueue(pending);
    to.serve();
  }

  /** Closes the route; returns the queued requests. */
  close(): PendingRequest[] {
    for (const target of this.targets) target.onRoom.delete(this.#serve);
    const waiting = [...this.#pinned, ...this.#queue].filter(({ aborted }) => !aborted);
    this.#queue = [];
    this.#pinned = [];
    this.#announce();
    return waiting;
  }

  get waiting(): number {
    return this.#queue.length + this.#pinned.length;
  }

  #enqueue(pending: PendingRequest): void {
    pending.queued = true;
    (pending.constraint ? this.#pinned : this.#queue).push(pending);
    this.#announce();
    this.#poll();
  }

  /** Returns false when no machine has capacity. */
  #try(pending: PendingRequest): boolean {
    const target = this.#choose(pending.constraint);
    if (!target) return false;
    const done = (connection: UpstreamConnection | Socket | undefined, problem?: Error): void => {
      if (!connection) {
        this.#again(pending, target, problem);
        return;
      }
      if (!pending.aborted) {
        pending.got(target, connection);
        return;
      }
      // The client has disconnected.
      if ("abandon" in connection) target.giveBack(connection);
      else connection.destroy();
    };
    if (pending.kind === "exchange") return target.take(pending, done);
    if (pending.kind === "socket") return target.takeSocket(pending.preface, done);
    if (!target.acquire()) return false;
    pending.got(target, undefined);
    return true;
  }

  /** A connection failed. The next attempt may find this or another machine ready. */
  #again(pending: PendingRequest, target: TargetState, problem: Error | undefined): void {
    if (pending.aborted) return;
    const now = this.#context.now();
    pending.refused_at ??= now;
    if (now - pending.refused_at > PROXY_LIMITS.refused_ms) {
      const why = target.reason ?? "does the program listen there, on all addresses?";
      pending.refused({
        status: 502,
        reason: "machine_unreachable",
        text: `no machine of ${this.app.app_name} takes connections on port ${target.table.port} (${problem?.message ?? "refused"}); ${why}`,
      });
      return;
    }
    this.#enqueue(pending);
  }

  #choose(constraint: TargetConstraint | undefined): TargetState | undefined {
    let best: TargetState | undefined;
    let least = Number.POSITIVE_INFINITY;
    // Includes the present request.
    let in_use = 1;
    for (const target of this.targets) {
      in_use += target.inUse;
      const fullness = target.fullness();
      if (fullness === undefined || target.backingOff || !suits(constraint, target.table)) continue;
      const rank = constraint?.prefer === target.table.machine_id ? -1 : fullness;
      if (rank > least || (rank === least && best && !this.#pickedBefore(target, best))) continue;
      best = target;
      least = rank;
    }
    if (best) this.#context.slots.pick(best.table.slot);
    const [first] = this.targets;
    if (first) this.#context.slots.recordPeak(first.table.slot, in_use);
    if (least >= 1) this.#wantMore(best !== undefined, constraint);
    return best;
  }

  #pickedBefore(one: TargetState, other: TargetState): boolean {
    return this.#context.slots.pickedBefore(one.table.slot, other.table.slot);
  }

  #wantMore(full: boolean, constraint: TargetConstraint | undefined): void {
    const startable = this.table.startable.find((one) => suits(constraint, one));
    if (!startable) return;
    const now = this.#context.now();
    if (now - this.#asked_at < PROXY_LIMITS.start_again_ms) return;
    this.#asked_at = now;
    const running = this.targets.length;
    if (constraint) {
      this.#requestStart("a request was replayed to it, or to where it is", startable.machine_id);
      return;
    }
    this.#requestStart(
      running === 0
        ? "a request came and no machine was running"
        : full
          ? `a request came and all ${running} running machines were at their soft limit`
          : `a request came and all ${running} running machines were at their hard limit`,
    );
  }

  /** Why waiting would be futile. */
  #rejectReason({ constraint }: PendingRequest): Refusal | undefined {
    if (this.waiting >= PROXY_LIMITS.queue_length) {
      return {
        status: 503,
        reason: "queue_full",
        text: `too many requests for ${this.app.app_name} wait already (limit queue_length ${PROXY_LIMITS.queue_length})`,
      };
    }
    const suitable = (one: StartableMachine): boolean => suits(constraint, one);
    if (this.targets.some(({ table }) => suitable(table)) || this.table.startable.some(suitable)) return undefined;
    const wanted = constraint && [
      constraint.machine_id ?? "another machine",
      ...(constraint.region ? [`in ${constraint.region}`] : []),
    ];
    if (wanted) {
      const text = `${this.app.app_name}: a machine requested a replay to ${wanted.join(" ")}, which gets no requests here`;
      return { status: 502, reason: "replay_refused", text };
    }
    return { status: 503, reason: "no_machine", text: `${this.app.app_name}: ${this.table.empty}` };
  }

  #expired(pending: PendingRequest): Refusal {
    const seconds = PROXY_LIMITS.queue_ms / 1000;
    const name = this.app.app_name;
    if (this.targets.length === 0) {
      return { status: 503, reason: "start_timeout", text: `no machine of ${name} was running within ${seconds} s` };
    }
    if (pending.refused_at !== undefined) {
      return { status: 502, reason: "machine_unreachable", text: `no machine of ${name} took a connection` };
    }
    const text = `all ${this.targets.length} machines of ${name} were at their hard limit for ${seconds} s`;
    return { status: 503, reason: "hard_limit", text };
  }

  /** Polls while requests wait, because capacity freed by another worker is not announced. */
  #poll(): void {
    if (this.#polling) return;
    this.#polling = true;
    const scan = (): void => {
      if (this.#context.now() - this.#looked_at > PROXY_LIMITS.sweep_ms) this.#expire();
      if (this.#queue.length > 0 && this.targets.length === 0) this.#wantMore(false, undefined);
      this.serve();
      this.#polling = this.waiting > 0;
      if (this.#polling) setTimeout(scan, PROXY_LIMITS.poll_ms);
    };
    setTimeout(scan, PROXY_LIMITS.poll_ms);
  }

  #expire(): void {
    const now = this.#context.now();
    this.#looked_at = now;
    const isLate = ({ since }: PendingRequest): boolean => now - since > PROXY_LIMITS.queue_ms;
    const late = [...this.#queue, ...this.#pinned].filter(isLate);
    this.#queue = this.#queue.filter((pending) => !pending.aborted && !isLate(pending));
    this.#pinned = this.#pinned.filter((pending) => !pending.aborted && !isLate(pending));
    for (const pending of late) if (!pending.aborted) pending.refused(this.#expired(pending));
  }

  /** Whether requests in other workers wait for the same machines; freed capacity is shared with them. */
  #othersTurn(): boolean {
    const slot = this.targets[0]?.table.slot;
    if (slot === undefined) return false;
    const all = this.#context.slots.waiting(slot);
    const others = all - this.#announced;
    if (others <= 0 || Math.random() * all >= others) return false;
    for (const target of this.targets) target.yieldOne();
    return true;
  }

  /** Publishes the number of waiting requests to other workers. */
  #announce(): void {
    const by = this.#queue.length - this.#announced;
    if (by === 0) return;
    this.#announced += by;
    for (const { table } of this.targets) this.#context.slots.wait(table.slot, by);
  }
}
