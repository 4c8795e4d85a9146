/** A client for the HTTP API of a running node, used by `hangar db`. */
import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import type { Credentials } from "./credentials/credentials.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import { Peer } from "./node/peer.ts";

export class NodeClient {
  readonly #peer: Peer;
  /** For routes without authentication, whose responses carry no proof. */
  readonly #open: Peer;
  /** A restore is silent until it is done. */
  readonly #restoring: Peer;

  constructor(url: string, clock: Clock, credentials?: Credentials) {
    this.#peer = new Peer(url, clock, credentials, REPLICATION_LIMITS.asked_ms);
    const silence_ms = REPLICATION_LIMITS.wait_most_ms + REPLICATION_LIMITS.asked_ms;
    this.#open = new Peer(url, clock, undefined, silence_ms);
    this.#restoring = new Peer(url, clock, credentials, REPLICATION_LIMITS.restore_ms);
  }

  /** What it says about itself. */
  async info(): Promise<unknown> {
    return await this.#open.json("GET", "/info", undefined, NEVER);
  }

  /** Waits until a transaction is there; without one, for what was committed before the question. */
  async wait(query: { db: string; txid?: string; timeout?: string }): Promise<unknown> {
    return await this.#open.json("GET", `/wait?${new URLSearchParams(query).toString()}`, undefined, NEVER);
  }

  /** Lets applications on this replica write to a database, until `unlock` or until it is not renewed. */
  async lock(name: string): Promise<{ id: string; position: string }> {
    return (await this.#peer.json("POST", "/lock", { name }, NEVER)) as { id: string; position: string };
  }

  async renewLock(name: string, id: string): Promise<void> {
    await this.#peer.json("POST", "/lock", { name, id }, NEVER);
  }

  /** Sends what was written to the primary, and so to all nodes. */
  async unlock(name: string, id: string): Promise<{ position: string; transactions: number }> {
    const answer = await this.#peer.json("POST", "/unlock", { name, id }, NEVER);
    return answer as { position: string; transactions: number };
  }

  /**
   * Makes it primary. `force`: also when it may lack transactions of the last primary, which are then lost, and only
   * when there is no primary.
   */
  async promote({ force = false } = {}): Promise<unknown> {
    const path = force ? "/promote?force=true" : "/promote";
    return await this.#peer.json("POST", path, {}, NEVER);
  }

  /** Writes a database to a file that does not exist yet, as of one moment. Returns its position. */
  async exportTo(name: string, file: string): Promise<string> {
    const headers = await this.#peer.fetchFile(`/export?name=${encodeURIComponent(name)}`, file, NEVER);
    return String(headers["hangar-position"]);
  }

  /** What the node's own backup can restore. */
  async backups(): Promise<unknown> {
    return await this.#restoring.json("GET", "/backups", undefined, NEVER);
  }

  /** Restores a database from the node's own backup, in one transaction. */
  async restore(query: { name: string; at?: string; txid?: string }): Promise<unknown> {
    return await this.#restoring.json("POST", `/restore?${new URLSearchParams(query).toString()}`, {}, NEVER);
  }

  /** Makes a file a database of the cluster, in one transaction. */
  async importFrom(name: string, file: string): Promise<unknown> {
    const hash = createHash("sha256");
    await pipeline(createReadStream(file), hash);
    const body = { file, bytes: statSync(file).size, sha256: hash.digest("hex") };
    return await this.#peer.sendFile(`/import?name=${encodeURIComponent(name)}`, body, NEVER);
  }
}

/** A large database takes its time; silence alone ends a question. */
const NEVER = new AbortController().signal;
