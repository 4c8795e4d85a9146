/** The replica's end: one connection to the primary, from finding out where both stand to the last frame. */
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream";
import { messageOf } from "#core/assert.ts";
import { verifySnapshot } from "../database/snapshot.ts";
import { PositionMismatch, type TransactionInfo } from "../database/state.ts";
import { writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader, LtxError } from "../ltx/codec.ts";
import { formatPosition } from "../position.ts";
import { type Directory, isDatabaseName } from "./directory.ts";
import { type Divergence, findDivergences } from "./divergence.ts";
import type { Peer } from "./peer.ts";
import { FRAME, type Frame, FrameReader, readTransaction } from "./wire.ts";

/** The primary speaks for a term that is over. */
export class StaleTerm extends Error {
  override readonly name = "StaleTerm";
}

export interface LinkEvents {
  /** The stream is up. Throws `StaleTerm` when the term is lower than one seen before. */
  connected(term: number): void;
  transaction(name: string, info: TransactionInfo): void;
  /** Something of the primary arrived, sent at this time by its clock. */
  heard(primary_ms: number): void;
  /** Everything the primary had at the start is here. */
  ready(): void;
  healed(name: string, divergence: Divergence, kept_at: string): void;
  /** The primary wants this node to take over. It has sent everything, and writes nothing any more. */
  handoff(term: number): void;
  log(message: string): void;
}

export interface LinkOptions {
  peer: Peer;
  directory: Directory;
  node: string;
  hostname: string;
  term: number;
  events: LinkEvents;
  /** Databases whose position is not to be believed, because going on from it has failed. */
  distrusted: Set<string>;
}

export class ReplicaLink {
  readonly #options: LinkOptions;
  readonly #directory: Directory;
  #term = 0;
  #divergences = new Map<string, Divergence>();
  /** Transactions of one database that came together and are applied together. */
  #batch: { name: string; files: Buffer[] } = { name: "", files: [] };
  #incoming: { name: string; path: string; fd: number } | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#directory = options.directory;
  }

  /** Runs until the connection ends, which is always an error or the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { peer, node, hostname, term, events, distrusted } = this.#options;
    this.#directory.discover();
    this.#divergences = await findDivergences(this.#directory, peer, signal);
    const databases: Record<string, string> = {};
    for (const { name, position, half_replaced } of this.#directory) {
      if (!half_replaced && !distrusted.has(name)) databases[name] = formatPosition(position);
    }
    const answer = await peer.openStream("/stream", { node, hostname, term, databases }, signal);
    try {
      events.connected(answer.term);
      this.#term = answer.term;
      await this.#read(answer);
    } finally {
      answer.response.destroy();
      this.#dropIncoming();
    }
    throw new Error("the primary closed the stream");
  }

  /**
   * Takes frames until the stream ends. What arrives within a moment is taken together: applying ten transactions at once
   * costs little more than applying one, and what the primary sends in one piece arrives in several.
   */
  async #read({ response, body }: Awaited<ReturnType<Peer["openStream"]>>): Promise<void> {
    const { gather_ms, gather_bytes } = REPLICATION_LIMITS;
    const reader = new FrameReader();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let timer: NodeJS.Timeout | undefined;
    let refused = false;
    const takeAll = (): void => {
      clearTimeout(timer);
      timer = undefined;
      // Nothing of this stream counts after what could not be taken.
      if (refused) return;
      try {
        for (const frame of reader.frames()) this.#take(frame);
        this.#applyBatch();
      } catch (error) {
        refused = true;
        reject(error);
      }
    };
    finished(response, (error) => {
      takeAll();
      if (error) reject(error);
      else resolve();
    });
    body.read(response, (bytes) => {
      if (refused) return;
      reader.push(bytes);
      if (reader.waiting >= gather_bytes) takeAll();
      else timer ??= setTimeout(takeAll, gather_ms);
    });
    await promise;
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
      if (this.#incoming) writeAll(this.#incoming.fd, payload);
      return;
    }
    this.#applyBatch();
    this.#takeMessage(type, JSON.parse(payload.toString("utf8")) as Record<string, unknown>);
  }

  #takeMessage(type: number, message: Record<string, unknown>): void {
    const { events } = this.#options;
    const name = String(message["name"]);
    switch (type) {
      case FRAME.snapshot:
        this.#beginSnapshot(name);
        break;
      case FRAME.snapshot_end:
        this.#endSnapshot();
        break;
      case FRAME.gone:
        this.#gone(name);
        break;
      case FRAME.ready:
        events.ready();
        break;
      case FRAME.heartbeat:
        events.heard(Number(message["at"]));
        break;
      case FRAME.handoff:
        this.#handoff(Number(message["term"]), message["positions"] as Record<string, string>);
        break;
      default:
        // A frame of a newer primary that is not needed to follow it.
        break;
    }
  }

  #applyBatch(): void {
    const { name, files } = this.#batch;
    if (files.length === 0) return;
    this.#batch = { name: "", files: [] };
    const database = this.#directory.get(name);
    if (!database) throw new Error(`${name}: a transaction for a database that is not here`);
    const last = decodeHeader(files.at(-1) ?? Buffer.alloc(0));
    try {
      const drop = last.commit === 0 ? files.pop() : undefined;
      database.apply(files, this.#term);
      if (drop) this.#options.events.transaction(name, this.#directory.applyDrop(database, drop, this.#term));
      this.#options.distrusted.delete(name);
    } catch (error) {
      // Opened again, it says truly where it stands; if even that leads nowhere, it gets a snapshot.
      if (!(error instanceof PositionMismatch || error instanceof LtxError)) throw error;
      const before = database.position.txid;
      const again = this.#directory.reopen(name);
      if (again.position.txid === before) this.#options.distrusted.add(name);
      throw error;
    }
    this.#options.events.heard(last.timestamp_ms);
  }

  #beginSnapshot(name: string): void {
    refuseBadName(name);
    this.#dropIncoming();
    const path = join(this.#directory.dir, ".replication", `${name}.incoming.ltx`);
    this.#incoming = { name, path, fd: openSync(path, "w", 0o600) };
  }

  #endSnapshot(): void {
    const { events, distrusted } = this.#options;
    const incoming = this.#incoming;
    if (!incoming) throw new Error("the end of a snapshot that never began");
    const { name, path } = incoming;
    const snapshot = verifySnapshot(path);
    this.#keepIfDiverged(name);
    this.#directory.install(name, snapshot);
    distrusted.delete(name);
    this.#dropIncoming();
    const { position, header } = snapshot;
    const { page_size, commit, timestamp_ms } = header;
    events.log(`${name}: replaced by the primary's, now at ${formatPosition(position)}`);
    events.transaction(name, { position, page_size, commit, timestamp_ms });
  }

  /** What nobody else has is copied before it is overwritten. */
  #keepIfDiverged(name: string): void {
    const database = this.#directory.get(name);
    const divergence = this.#divergences.get(name);
    if (!database || database.half_replaced || !divergence) return;
    const kept_at = this.#directory.keepAside(database);
    this.#divergences.delete(name);
    this.#options.events.healed(name, divergence, kept_at);
  }

  #gone(name: string): void {
    const database = this.#directory.get(name);
    if (!database) return;
    const kept_at = this.#directory.keepAside(database);
    this.#options.events.healed(name, { common: undefined, dropped: database.position.txid }, kept_at);
    this.#directory.remove(name);
  }

  #handoff(term: number, positions: Record<string, string>): void {
    const here = this.#directory.positions();
    const equal = Object.entries(positions).every(([name, position]) => here[name] === position);
    if (!equal) throw new PositionMismatch("asked to take over without having everything");
    this.#options.events.handoff(term);
  }

  #dropIncoming(): void {
    if (!this.#incoming) return;
    const { fd, path } = this.#incoming;
    this.#incoming = undefined;
    closeSync(fd);
    try {
      rmSync(path, { force: true });
    } catch (error) {
      this.#options.events.log(`${path}: ${messageOf(error)}`);
    }
  }
}

/** A name becomes a path here, whoever it comes from. */
function refuseBadName(name: string): void {
  if (!isDatabaseName(name)) throw new Error(`the primary sent a database called ${JSON.stringify(name)}`);
}
