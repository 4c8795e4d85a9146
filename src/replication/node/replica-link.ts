/**
 * The replica's end of the stream: one connection to the primary, from the comparison of positions to the last frame. A
 * database to which a frame cannot be applied is reopened and reports its position again; the others continue.
 */
import { messageOf } from "#core/assert.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import type { SnapshotHead } from "../database/received-snapshot.ts";
import { PositionMismatch, type TransactionInfo } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader, LtxError } from "../ltx/codec.ts";
import { formatPosition, NO_PAGES, parsePosition } from "../position.ts";
import { applyKeeping } from "./apply-keeping.ts";
import { isDatabaseName } from "./database-name.ts";
import type { Directory } from "./directory.ts";
import { type Divergence, findDivergences } from "./divergence.ts";
import { readGathered } from "./gathered-frames.ts";
import { Incoming, readSnapshotHead } from "./incoming.ts";
import type { Peer } from "./peer.ts";
import { FRAME, type Frame, readTransaction } from "./wire.ts";

/** The primary's term is over. */
export class StaleTerm extends Error {
  override readonly name = "StaleTerm";
}

export interface LinkEvents {
  /** The stream is open. Throws `StaleTerm` for a lower term than one seen before. */
  connected(term: number): void;
  transaction(name: string, info: TransactionInfo): void;
  /** A message of the primary arrived, with its clock. */
  heard(primary_ms: number): void;
  /** Everything that the primary had at the start is here. */
  ready(): void;
  healed(name: string, divergence: Divergence, kept_at: string): void;
  /** The primary requests that this node takes over. It has sent everything, and writes nothing more. */
  handoff(term: number): void;
  log(message: string): void;
}

export interface LinkOptions {
  peer: Peer;
  directory: Directory;
  node: string;
  hostname: string;
  /** Whether it may become primary. */
  candidate: boolean;
  term: number;
  events: LinkEvents;
  /** Databases whose position is not trusted, because continuing from it failed. */
  distrusted: Set<string>;
}

export class ReplicaLink {
  readonly #options: LinkOptions;
  readonly #directory: Directory;
  readonly #incoming: Incoming;
  #term = 0;
  #signal = new AbortController().signal;
  /** Durable positions as last acknowledged to the primary. */
  readonly #acknowledged = new Map<string, string>();
  #divergences = new Map<string, Divergence>();
  /** Transactions of one database that are applied together. */
  #batch: { name: string; files: Buffer[] } = { name: "", files: [] };
  /** Databases whose position the primary must take again. What it sends before that may not fit. */
  readonly #unplaced = new Set<string>();
  /** How often that was requested without progress, and when it may be requested again. */
  readonly #placements = new Map<string, { times: number; next_ms: number }>();
  #placing: Promise<void> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#directory = options.directory;
    this.#incoming = new Incoming(options.directory.dir);
  }

  /** Runs until the connection ends, by an error or the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { peer, node, hostname, candidate, term, events } = this.#options;
    this.#signal = signal;
    this.#directory.healTouched();
    this.#directory.discover();
    await this.#directory.settle();
    this.#directory.setDamagedAside();
    this.#divergences = await findDivergences(this.#directory, peer, signal);
    const databases: Record<string, string> = {};
    for (const { name } of this.#directory) {
      const position = this.#positionOf(name);
      if (position !== undefined) databases[name] = position;
    }
    const skip = this.#directory.unusable;
    for (const name of skip) this.#unplaced.add(name);
    const partial = Object.fromEntries(this.#incoming.partials());
    const hello = { node, hostname, candidate, term, databases, skip, partial };
    const answer = await peer.openStream("/stream", hello, signal);
    const over = new AbortController();
    const place = (): void => {
      this.#placing ??= this.#place(AbortSignal.any([signal, over.signal])).finally(() => {
        this.#placing = undefined;
      });
    };
    const placing = setInterval(place, REPLICATION_LIMITS.discover_anyway_ms);
    try {
      events.connected(answer.term);
      this.#term = answer.term;
      await readGathered(answer, (frames) => this.#takeAll(frames));
    } finally {
      clearInterval(placing);
      answer.response.destroy();
      // The next connection must not find this one still working.
      over.abort();
      await this.#placing;
      this.#attempt(() => this.#incoming.interrupt());
    }
    throw new Error("the primary closed the stream");
  }

  /** A database's position; undefined when it is not trusted. */
  #positionOf(name: string): string | undefined {
    const database = this.#directory.get(name);
    if (!database || database.half_replaced || this.#options.distrusted.has(name)) return undefined;
    return formatPosition(database.position);
  }

  /** Opens what could not be opened before, and reports its position. */
  async #place(signal: AbortSignal): Promise<void> {
    try {
      for (const name of this.#directory.healTouched()) this.#unplaced.add(name);
      this.#directory.discover();
      this.#directory.setDamagedAside();
      const unusable = new Set(this.#directory.unusable);
      for (const name of this.#unplaced) {
        if (!unusable.has(name) && performance.now() >= (this.#placements.get(name)?.next_ms ?? 0)) {
          await this.#placeOne(name, signal);
        }
      }
    } catch (error) {
      if (!signal.aborted) this.#options.events.log(`placing: ${messageOf(error)}`);
    }
  }

  async #placeOne(name: string, signal: AbortSignal): Promise<void> {
    const { peer, node } = this.#options;
    const times = (this.#placements.get(name)?.times ?? 0) + 1;
    const { retry_ms, retry_most_ms } = REPLICATION_LIMITS;
    const next_ms = performance.now() + Math.min(retry_ms * 2 ** times, retry_most_ms);
    this.#placements.set(name, { times, next_ms });
    const divergence = (await findDivergences(this.#directory, peer, signal, name)).get(name);
    if (divergence) this.#divergences.set(name, divergence);
    const position = this.#positionOf(name);
    await peer.json("POST", "/place", { node, name, ...(position === undefined ? {} : { position }) }, signal);
    this.#unplaced.delete(name);
    this.#directory.problems.clear(name);
  }

  #takeAll(frames: Iterable<Frame>): void {
    for (const frame of frames) this.#take(frame);
    this.#applyBatch();
  }

  #take({ type, payload }: Frame): void {
    if (type === FRAME.transaction) {
      const { name, ltx } = readTransaction(payload);
      refuseBadName(name);
      if (name !== this.#batch.name) this.#applyBatch();
      this.#batch.name = name;
      this.#batch.files.push(ltx);
      return;
    }
    if (type === FRAME.snapshot_part) {
      this.#guarded(this.#incoming.name, () => this.#incoming.write(payload));
      return;
    }
    this.#applyBatch();
    this.#takeMessage(type, JSON.parse(payload.toString("utf8")) as Record<string, unknown>);
  }

  #takeMessage(type: number, message: Record<string, unknown>): void {
    const { events } = this.#options;
    const { reason } = message;
    const name = String(message["name"]);
    switch (type) {
      case FRAME.snapshot:
        refuseBadName(name);
        this.#guarded(name, () => this.#beginSnapshot(name, message));
        break;
      case FRAME.snapshot_end:
        this.#guarded(this.#incoming.name, () => this.#endSnapshot());
        break;
      case FRAME.gone:
        this.#guarded(name, () => this.#gone(name, String(message["position"])));
        break;
      case FRAME.unknown:
        this.#unknown(name, typeof reason === "string" ? reason : "it has never had it");
        break;
      case FRAME.known:
        this.#known(name);
        break;
      case FRAME.ready:
        // A node that lacks a database is not complete.
        if (this.#unplaced.size === 0) events.ready();
        break;
      case FRAME.sync:
        void this.#acknowledge();
        break;
      case FRAME.heartbeat:
        events.heard(Number(message["at"]));
        break;
      case FRAME.handoff:
        this.#handoff(Number(message["term"]), message["positions"] as Record<string, string>);
        break;
      default:
        // An optional frame of a newer primary.
        break;
    }
  }

  /** A failure of one database is retried later, for that one. */
  #guarded(name: string | undefined, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (name === undefined) throw error;
      if (name === this.#incoming.name) this.#dropIncoming();
      this.#unplaced.add(name);
      // The input was invalid; the local data is fine.
      if (isBadInput(error)) this.#options.events.log(`${name}: ${messageOf(error)}`);
      else this.#directory.quarantine(name, error);
    }
  }

  /** Progress was made from the local position. */
  #placed(name: string): void {
    this.#options.distrusted.delete(name);
    this.#unplaced.delete(name);
    this.#placements.delete(name);
    this.#known(name);
  }

  /** The primary has it, so the problem of a missing one is over. */
  #known(name: string): void {
    const { problems } = this.#directory;
    if (problems.get(name)?.state === "kept") problems.clear(name);
  }

  #applyBatch(): void {
    const { name, files } = this.#batch;
    if (files.length === 0) return;
    this.#batch = { name: "", files: [] };
    const last = decodeHeader(files.at(-1) ?? Buffer.alloc(0));
    this.#guarded(name, () => this.#apply(name, files, last.commit === 0));
    this.#options.events.heard(last.timestamp_ms);
  }

  #apply(name: string, files: Buffer[], with_drop: boolean): void {
    const { distrusted, events } = this.#options;
    const database = this.#directory.get(name);
    if (!database) {
      this.#unplaced.add(name);
      return;
    }
    try {
      const drop = with_drop ? files.pop() : undefined;
      applyKeeping(database, files, this.#term, () => this.#keepReplaced(database));
      if (drop) {
        const { info, kept_at } = this.#directory.applyDrop(database, drop, this.#term);
        events.log(`${name}: deleted on the primary; moved to ${kept_at}`);
        events.transaction(name, info);
      }
      this.#placed(name);
    } catch (error) {
      if (!isBadInput(error)) throw error;
      // What was sent before the primary took the new position need not fit.
      if (this.#unplaced.has(name)) return;
      this.#unplaced.add(name);
      events.log(messageOf(error));
      // Reopened, it reports its true position; if that fails too, it gets a snapshot.
      const before = database.position.txid;
      const again = this.#directory.reopen(name);
      if (again.position.txid === before) distrusted.add(name);
    }
  }

  #keepReplaced(database: ReplicatedDatabase): void {
    const kept_at = this.#directory.aside.copy(database);
    this.#options.events.log(
      `${database.name}: on the primary another file took its place, or it was written to while no node ran; what was here is copied to ${kept_at}`,
    );
  }

  #beginSnapshot(name: string, message: Record<string, unknown>): void {
    this.#incoming.interrupt();
    // What is here and cannot be used now must not be overwritten.
    if (this.#directory.unusable.includes(name)) return;
    const { head, kept } = readSnapshotHead(message);
    this.#incoming.begin(name, head, kept);
  }

  #endSnapshot(): void {
    const { events } = this.#options;
    const { name } = this.#incoming;
    const snapshot = this.#incoming.verify();
    if (!snapshot || name === undefined) return;
    this.#keepBefore(name, snapshot);
    this.#directory.install(name, snapshot);
    this.#placed(name);
    this.#dropIncoming();
    const { position, page_size, pages: commit, timestamp_ms } = snapshot;
    events.log(`${name}: replaced by the primary's, now at ${formatPosition(position)}`);
    events.transaction(name, { position, page_size, commit, timestamp_ms });
  }

  /** Copies what the primary's snapshot does not continue before it is overwritten. */
  #keepBefore(name: string, { replaced_at, page_size }: SnapshotHead): void {
    const database = this.#directory.get(name);
    if (!database || database.half_replaced) return;
    const divergence = this.#divergences.get(name);
    if (divergence) this.#keepDiverged(database, divergence);
    // One of another page size is moved aside anyway.
    else if (database.position.txid < replaced_at && database.page_size === page_size) this.#keepReplaced(database);
  }

  #keepDiverged(database: ReplicatedDatabase, divergence: Divergence): void {
    const { name } = database;
    const kept_at = this.#directory.aside.copy(database);
    this.#divergences.delete(name);
    this.#options.events.healed(name, divergence, kept_at);
  }

  /** The primary logged a deletion. Without that, or when this node has more, the database stays. */
  #gone(name: string, text: string): void {
    const database = this.#directory.get(name);
    if (!database) return;
    const at = parsePosition(text);
    if (at?.checksum !== NO_PAGES || database.position.txid >= at.txid) {
      this.#unknown(name, "it has not logged a deletion that follows from what is here");
      return;
    }
    const kept_at = this.#directory.applyDeletion(database, at);
    this.#options.events.log(`${name}: deleted on the primary; moved to ${kept_at}`);
  }

  #unknown(name: string, reason: string): void {
    if (!this.#directory.get(name)) return;
    this.#directory.problems.set(name, "kept", `the primary does not have it (${reason}); it stays as it is`);
  }

  #handoff(term: number, positions: Record<string, string>): void {
    const here = this.#directory.positions();
    const equal = Object.entries(positions).every(([name, position]) => here[name] === position);
    if (!equal) throw new PositionMismatch("requested to take over without having everything");
    // From here on this node may be the only one that has it.
    for (const { log } of this.#directory) log.syncNow();
    this.#options.events.handoff(term);
  }

  /** Syncs, and acknowledges to the primary, which repeats its request if that is lost. */
  async #acknowledge(): Promise<void> {
    const { peer, node, events } = this.#options;
    try {
      const databases: Record<string, string> = {};
      for (const database of this.#directory) {
        const position = this.#positionOf(database.name);
        if (position === undefined || this.#acknowledged.get(database.name) === position) continue;
        await database.durable();
        databases[database.name] = position;
      }
      await peer.json("POST", "/ack", { node, term: this.#term, databases }, this.#signal);
      for (const [name, position] of Object.entries(databases)) this.#acknowledged.set(name, position);
    } catch (error) {
      if (!this.#signal.aborted) events.log(`acknowledging: ${messageOf(error)}`);
    }
  }

  #dropIncoming(): void {
    this.#attempt(() => this.#incoming.drop());
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.events.log(messageOf(error));
    }
  }
}

const isBadInput = (error: unknown): boolean => error instanceof PositionMismatch || error instanceof LtxError;

/** A name becomes a path, so it is validated. */
function refuseBadName(name: string): void {
  if (!isDatabaseName(name)) throw new Error(`the primary sent a database called ${JSON.stringify(name)}`);
}
