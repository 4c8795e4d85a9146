/**
 * A node: a directory of databases, its role for all of them, and its event readers. What decides the role (a setting,
 * or an election) is outside of this class.
 *
 *   primary   databases are released, applications write, transactions are captured and sent to replicas
 *   replica   databases are held, what the primary sends is applied
 *   none      databases are held, nothing happens: fenced, or no primary is known
 */
import type { ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { CheckpointThread } from "../database/checkpointer.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import type { TransactionInfo } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Mutex } from "../mutex.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { Announcer } from "./announcer.ts";
import { Directory } from "./directory.ts";
import { drained } from "./drained.ts";
import { EventHub } from "./events.ts";
import { Following } from "./following.ts";
import { HaltLocks } from "./halt-locks.ts";
import { IdentityFile } from "./identity.ts";
import { lockAll } from "./lock-databases.ts";
import { NodeMetrics } from "./metrics.ts";
import { PositionWaits } from "./position-waits.ts";
import { StaleTerm } from "./replica-link.ts";
import { StatusFiles } from "./status-files.ts";
import { type Hello, Streams } from "./streams.ts";
import type { NodeOptions, ProxyStatus, Role } from "./types.ts";
import { captureOne, watchOver } from "./watch.ts";

export class ReplicationNode {
  readonly directory: Directory;
  readonly events = new EventHub();
  readonly waits = new PositionWaits();
  readonly streams: Streams;
  readonly metrics: NodeMetrics;
  readonly acknowledgements: Acknowledgements;
  readonly halts = new HaltLocks(this);
  readonly #options: NodeOptions;
  readonly #identity: IdentityFile;
  readonly #files: StatusFiles;
  readonly #following: Following;
  readonly #checkpointer = new CheckpointThread();
  #role: Role = { kind: "none" };
  /** Serializes role changes: an election, a user and a handover may coincide. */
  readonly #changes = new Mutex();
  #closing = false;
  readonly #work = new Set<Promise<unknown>>();
  #stop: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Until when (monotonic) this node may act as primary. */
  #until_ms: () => number = forever;
  #starting = true;
  readonly #announcer = new Announcer({
    may: () => (this.#canPublish() ? "now" : this.#starting || this.#role.kind === "primary" ? "later" : "never"),
    publish: (name, infos) => this.#publish(name, infos),
  });
  proxy: ProxyStatus | undefined;
  /** Called when the primary requests that this node takes over. */
  onHandoff: (term: number) => void = () => undefined;

  /** While primary: transactions after this one must stay in the log, whatever their age. */
  keepAfter: (name: string) => number = forever;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.#identity = new IdentityFile(options.dir);
    this.#files = new StatusFiles(options.dir);
    const { dir, clock, sizes, step, log, onFailure, max_lag_ms } = options;
    this.directory = new Directory({
      dir,
      node_id: BigInt(`0x${this.#identity.value.node}`),
      clock,
      onFailure,
      log,
      onTransactions: (name, infos) => this.#announcer.transactions(name, infos),
      onOpened: ({ name, position }) => {
        this.#files.position(name, position);
        this.waits.notify(name);
      },
      onUndone: (count, message) =>
        this.#announcer.announce(() => {
          if (this.metrics.countUndone(count)) log(message);
        }),
      checkpointer: this.#checkpointer,
      ...(sizes === undefined ? {} : { sizes }),
      ...(max_lag_ms === undefined ? {} : { max_lag_ms }),
      ...(step === undefined ? {} : { step }),
    });
    this.acknowledgements = new Acknowledgements({
      self: this.#identity.value.node,
      directory: this.directory,
      waits: this.waits,
      clock,
      log,
      streams: () => this.streams,
      term: () => (this.#role.kind === "primary" && this.#canPublish() ? this.#role.term : undefined),
      ...(options.ack === undefined ? {} : { mode: options.ack }),
      ...(options.max_unacked === undefined ? {} : { max_unacked: options.max_unacked }),
    });
    const { in_sync } = this.acknowledgements;
    this.streams = new Streams({ directory: this.directory, in_sync, clock, log });
    this.metrics = new NodeMetrics(this);
    this.#following = new Following({
      options,
      identity: this.#identity,
      directory: this.directory,
      events: this.events,
      files: this.#files,
      metrics: this.metrics,
      transaction: (name, info) => this.#announcer.transactions(name, [info]),
      handoff: (term) => this.onHandoff(term),
      tidy: () => this.#tidy(),
    });
    this.directory.discover();
  }

  get id(): string {
    return this.#identity.value.node;
  }

  /** The highest term this node knows of. */
  get term(): number {
    return this.#identity.value.term;
  }

  /** The highest term in which this node had everything. */
  get complete_term(): number {
    return this.#identity.value.complete_term;
  }

  get was_primary(): boolean {
    return this.#identity.value.was_primary;
  }

  get role(): Role {
    return this.#role;
  }

  get hostname(): string {
    return this.#options.hostname;
  }

  get lag_ms(): number {
    return this.#following.lag_ms;
  }

  get closing(): boolean {
    return this.#closing;
  }

  get dir(): string {
    return this.#options.dir;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  // ——— roles ———

  /** Records that this node is complete in a term it is about to lead. */
  claim(term: number): void {
    this.#identity.enter(Math.max(term, this.term), false);
    this.#identity.complete();
  }

  async becomePrimary(term: number, until_ms: () => number = forever): Promise<void> {
    await this.#change(() => this.#becomePrimary(term, until_ms));
  }

  async #becomePrimary(term: number, until_ms: () => number): Promise<void> {
    await this.#leave();
    if (term < this.term) throw new StaleTerm(`term ${term} is over, ${this.term} was seen`);
    this.#identity.enter(term, true);
    this.#identity.complete();
    this.#until_ms = until_ms;
    this.#role = { kind: "primary", term };
    this.directory.term = term;
    this.directory.discover();
    await this.directory.settle();
    for (const database of this.directory) database.term = term;
    this.acknowledgements.begin(term);
    this.#release([...this.directory]);
    this.#options.log(`primary of term ${term}`);
    this.#files.primary(undefined);
    this.#files.lag(0);
    this.events.primaryChange({ isPrimary: true });
    this.#starting = false;
    this.#announcer.flush();
    this.#begin((signal) => this.#watchOver(signal));
  }

  /** Follows the primary at this URL, with retries. */
  async becomeReplica(primary: string): Promise<void> {
    await this.#change(async () => {
      if (this.#role.kind === "replica" && this.#role.primary === primary) return;
      await this.#fence();
      this.#role = { kind: "replica", primary };
      this.#begin((signal) => this.#following.run(primary, signal));
    });
  }

  /** Gives up any role: when this returns, no application can write and nothing is sent or applied. */
  async fence(): Promise<void> {
    await this.#changes.acquire(() => this.#fence());
  }

  async #fence(): Promise<void> {
    const was_primary = this.#role.kind === "primary";
    this.#starting = false;
    this.#announcer.discard();
    await this.#leave();
    if (was_primary) this.#identity.enter(this.term, false);
    await this.#lockAll();
    this.streams.close();
    this.#files.primary(undefined);
    this.events.primaryChange({ isPrimary: false });
  }

  /** When this has resolved, nothing of this node writes to its directory. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#changes.acquire(() => this.#leave());
    await Promise.allSettled(this.#work);
    this.streams.close();
    this.events.close();
    this.directory.close();
    await this.#checkpointer.close();
    this.#files.primary(undefined);
    await this.#files.close();
  }

  /** Work on the directory that `close` waits for. It should end soon once `closing` is true. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseIfClosing();
    const running: Promise<T> = work().finally(() => this.#work.delete(running));
    this.#work.add(running);
    return await running;
  }

  /** One role change at a time, and none while closing. */
  async #change(to: () => Promise<void>): Promise<void> {
    await this.#changes.acquire(() => {
      this.#refuseIfClosing();
      return to();
    });
  }

  #refuseIfClosing(): void {
    if (this.#closing) fail("conflict", "this node is being closed; use another one");
  }

  async #leave(): Promise<void> {
    await this.#endLoop();
    this.#role = { kind: "none" };
  }

  async #endLoop(): Promise<void> {
    this.halts.clear();
    this.#stop?.abort();
    await this.#running;
  }

  #begin(loop: (signal: AbortSignal) => Promise<void>): void {
    const stop = new AbortController();
    this.#stop = stop;
    this.#running = loop(stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) this.#options.onFailure(error);
    });
  }

  #lockAll(until_ms = Number.POSITIVE_INFINITY): Promise<boolean> {
    return lockAll(this.directory, this.clock, () => this.clock.monotonic() > until_ms || this.#closing);
  }

  // ——— primary ———

  #watchOver(signal: AbortSignal): Promise<void> {
    const { clock, directory: databases, streams, acknowledgements } = this;
    const unacked = (database: ReplicatedDatabase): boolean => acknowledgements.tooFarAhead(database);
    const requestAcks = (): void => acknowledgements.look();
    const [discover, tidy] = [(): void => this.#discover(), (): void => this.#tidy()];
    const { max_lag_ms = REPLICATION_LIMITS.max_lag_ms } = this.#options;
    const until_ms = (): number => this.#until_ms();
    const parts = { clock, databases, streams, max_lag_ms, until_ms, unacked, requestAcks, discover, tidy };
    return watchOver(parts, signal);
  }

  #discover(): void {
    this.#announcer.flush();
    if (!this.directory.changed()) {
      this.#release(this.directory.advance());
      return;
    }
    for (const dropped of this.directory.findDropped()) {
      this.#announcer.transactions(dropped.name, [dropped.info]);
      this.streams.dropped(dropped);
    }
    this.#release(this.directory.discover());
  }

  /** Lets applications write to what was opened. */
  #release(opened: readonly ReplicatedDatabase[]): void {
    for (const database of opened) {
      try {
        database.release();
      } catch (error) {
        this.directory.quarantine(database.name, error);
      }
    }
    if (opened.length > 0) this.streams.pump();
  }

  /** Captures commits now, as time permits. True when complete, or not our task. */
  look(name: string): boolean {
    if (this.#role.kind !== "primary") return true;
    if (!this.#canPublish()) return false;
    if (!this.directory.get(name)) this.#discover();
    const database = this.directory.get(name);
    if (!database) return !this.directory.unusable.includes(name);
    return database.held || captureOne(this.directory, database).behind === 0;
  }

  /** The last transaction of a database that counts: durable on the primary, applied on a replica. */
  reached(name: string): number {
    const database = this.directory.get(name);
    if (!database) return -1;
    if (this.#role.kind !== "primary") return database.position.txid;
    return this.#canPublish() ? database.log.durable : -1;
  }

  /** Begins a stream to a replica. */
  serve(hello: Hello, response: ServerResponse): void {
    if (this.#role.kind !== "primary") fail("conflict", "this node is not the primary");
    if (hello.term > this.#role.term) fail("conflict", `term ${this.#role.term} is over, ${hello.term} was seen`);
    this.streams.add(hello, response);
  }

  /**
   * Hands over to a replica: stops the applications, sends everything, and requests that it takes over. Afterwards this
   * node is fenced. Fails, and stays primary, when the replica is missing or too slow.
   */
  async handOff(node: string): Promise<void> {
    await this.#change(() => drained(this, () => this.#handOff(node)));
  }

  async #handOff(node: string): Promise<void> {
    if (this.#role.kind !== "primary") fail("conflict", "this node is not the primary");
    const { term } = this.#role;
    if (!this.streams.replicas.some((replica) => replica.node === node)) {
      fail("conflict", `replica ${node} is not connected`);
    }
    const until_ms = this.clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
    // Still primary: transactions that finish now are announced and handed over too.
    await this.#endLoop();
    const held = await this.#lockAll(until_ms);
    while (held && !this.acknowledgements.hasAll(node) && this.clock.monotonic() < until_ms) {
      for (const database of this.directory) await database.log.sync();
      this.streams.pump();
      await this.clock.sleep(2);
    }
    if (!held || !this.acknowledgements.hasAll(node) || !this.streams.handOff(node, term)) {
      await this.#becomePrimary(term, this.#until_ms);
      const what = held ? `replica ${node} did not receive everything` : "an application did not end its transaction";
      fail("conflict", `${what} in ${REPLICATION_LIMITS.handoff_ms} ms; this node stays primary`);
    }
    await this.#fence();
  }

  // ——— both ———

  #tidy(): void {
    this.directory.tidy(this.#role.kind === "primary" ? this.keepAfter : forever);
  }

  #canPublish(): boolean {
    if (this.#role.kind === "primary") return this.clock.monotonic() < this.#until_ms();
    return this.#role.kind === "replica";
  }

  #publish(name: string, infos: readonly TransactionInfo[]): void {
    this.metrics.transactions += infos.length;
    const last = infos.at(-1);
    // A deletion leaves no pages.
    if (last?.commit === 0) this.#files.gone(name);
    else if (last) this.#files.position(name, last.position);
    this.events.transactions(name, infos);
    this.waits.notify(name);
    if (this.#role.kind !== "primary") return;
    this.streams.pump(name);
    this.acknowledgements.captured();
  }
}

const forever = (): number => Number.POSITIVE_INFINITY;
