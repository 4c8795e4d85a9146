import type { Socket } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import type { AppTable, PortTable, StartableMachine } from "../../table.ts";
import type { EdgeCounters } from "../counters.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import type { Statics } from "../static/statics.ts";
import type { PendingRequest, Refusal, TargetConstraint } from "./pending-request.ts";
import type { TargetState, WorkerContext } from "./target.ts";

const suits = (constraint: TargetConstraint | undefined, { machine_id, region }: StartableMachine): boolean =>
  !constraint ||
  ((constraint.machine_id ?? machine_id) === machine_id &&
    (constraint.region ?? region) === region &&
    constraint.not !== machine_id);

/**
 * One exposed port of one app in one worker: chooses the machine, and keeps those who wait for one. The least
 * loaded machine within its soft limit is taken, then the least loaded within its hard limit, and among equally loaded
 * ones the least recently picked, by any worker (round robin); who finds none waits in line, up to a limit and a deadline.
 */
export class Route {
  readonly app: AppTable;
  readonly table: PortTable;
  readonly targets: readonly TargetState[];
  readonly counters: EdgeCounters;
  /** Which of its app's ports it is. */
  readonly key: string;
  /** Files that are served without a machine. */
  readonly statics: Statics;
  readonly #context: WorkerContext;
  readonly #askStart: (reason: string, machine_id?: string) => void;
  #queue: PendingRequest[] = [];
  /** Those who wait for certain machines: they hold up nobody. */
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
    askStart(reason: string, machine_id?: string): void;
  }) {
    const { protocol, start, end } = parts.table;
    this.key = `${protocol}/${start}-${end}`;
    this.app = parts.app;
    this.table = parts.table;
    this.targets = parts.targets;
    this.counters = parts.counters;
    this.statics = parts.statics;
    this.#context = parts.floor;
    this.#askStart = parts.askStart;
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

  /** Gives machines to those who wait, in order, as long as there is room. */
  serve(): void {
    const pinned = this.#pinned;
    this.#pinned = [];
    for (const pending of pinned) if (!pending.gone && !this.#try(pending)) this.#pinned.push(pending);
    while (this.#queue.length > 0) {
      const [first] = this.#queue as [PendingRequest];
      if (!first.gone && this.#othersTurn()) break;
      if (!first.gone && !this.#try(first)) break;
      this.#queue.shift();
    }
    this.#announce();
  }

  /** Another table is in force: those who wait move over. */
  handOver(to: Route): void {
    for (const pending of this.close()) to.#enqueue(pending);
    to.serve();
  }

  /** Ends it; answers who still waits. */
  close(): PendingRequest[] {
    for (const target of this.targets) target.onRoom.delete(this.#serve);
    const waiting = [...this.#pinned, ...this.#queue].filter(({ gone }) => !gone);
    this.#queue = [];
    this.#pinned = [];
    this.#announce();
    return waiting;
  }

  get waiting(): number {
    return this.#queue.length + this.#pinned.length;
  }

  #enqueue(pending: PendingRequest): void {
    (pending.constraint ? this.#pinned : this.#queue).push(pending);
    this.#announce();
    this.#poll();
  }

  /** False when there is no room anywhere. */
  #try(pending: PendingRequest): boolean {
    const target = this.#choose(pending.constraint);
    if (!target) return false;
    const done = (connection: UpstreamConnection | Socket | undefined, problem?: Error): void => {
      if (!connection) {
        this.#again(pending, target, problem);
        return;
      }
      if (!pending.gone) {
        pending.got(target, connection);
        return;
      }
      // Nobody wants it any more.
      if ("abandon" in connection) target.giveBack(connection);
      else connection.destroy();
    };
    if (pending.kind === "exchange") return target.take(pending, done);
    if (pending.kind === "socket") return target.takeSocket(pending.preface, done);
    if (!target.acquire()) return false;
    pending.got(target, undefined);
    return true;
  }

  /** A machine could not be connected to. The next try may find it, or another one, ready. */
  #again(pending: PendingRequest, target: TargetState, problem: Error | undefined): void {
    if (pending.gone) return;
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
    // With what is being asked for now.
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
      this.#askStart("a request was replayed to it, or to where it is", startable.machine_id);
      return;
    }
    this.#askStart(
      running === 0
        ? "a request came and no machine was running"
        : full
          ? `a request came and all ${running} running machines were at their soft limit`
          : `a request came and all ${running} running machines were at their hard limit`,
    );
  }

  /** Why waiting would lead nowhere. */
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
      const text = `${this.app.app_name}: a machine asked for a replay to ${wanted.join(" ")}, which gets no requests here`;
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

  /** While somebody waits: room may also come from another worker, which tells nobody. */
  #poll(): void {
    if (this.#polling) return;
    this.#polling = true;
    const look = (): void => {
      if (this.#context.now() - this.#looked_at > PROXY_LIMITS.sweep_ms) this.#expire();
      if (this.#queue.length > 0 && this.targets.length === 0) this.#wantMore(false, undefined);
      this.serve();
      this.#polling = this.waiting > 0;
      if (this.#polling) setTimeout(look, PROXY_LIMITS.poll_ms);
    };
    setTimeout(look, PROXY_LIMITS.poll_ms);
  }

  #expire(): void {
    const now = this.#context.now();
    this.#looked_at = now;
    const isLate = ({ since }: PendingRequest): boolean => now - since > PROXY_LIMITS.queue_ms;
    const late = [...this.#queue, ...this.#pinned].filter(isLate);
    this.#queue = this.#queue.filter((pending) => !pending.gone && !isLate(pending));
    this.#pinned = this.#pinned.filter((pending) => !pending.gone && !isLate(pending));
    for (const pending of late) if (!pending.gone) pending.refused(this.#expired(pending));
  }

  /** Others wait for the same machines in other workers: the room that came free is theirs as often as ours. */
  #othersTurn(): boolean {
    const slot = this.targets[0]?.table.slot;
    if (slot === undefined) return false;
    const all = this.#context.slots.waiting(slot);
    const others = all - this.#announced;
    if (others <= 0 || Math.random() * all >= others) return false;
    for (const target of this.targets) target.yieldOne();
    return true;
  }

  /** Tells the other workers how many wait here. */
  #announce(): void {
    const by = this.#queue.length - this.#announced;
    if (by === 0) return;
    this.#announced += by;
    for (const { table } of this.targets) this.#context.slots.wait(table.slot, by);
  }
}
