/**
 * The replica's part of a node: follows a primary, and publishes the result to the node's readers, files and metrics.
 */

import { REPLICATION_LIMITS } from "../limits.ts";
import type { Directory } from "./directory.ts";
import type { EventHub } from "./events.ts";
import { follow } from "./follow.ts";
import type { IdentityFile } from "./identity.ts";
import type { NodeMetrics } from "./metrics.ts";
import { Peer } from "./peer.ts";
import { type LinkEvents, StaleTerm } from "./replica-link.ts";
import type { StatusFiles } from "./status-files.ts";
import type { NodeOptions } from "./types.ts";

export interface FollowingParts {
  options: NodeOptions;
  identity: IdentityFile;
  directory: Directory;
  events: EventHub;
  files: StatusFiles;
  metrics: NodeMetrics;
  transaction: LinkEvents["transaction"];
  handoff: LinkEvents["handoff"];
  tidy(): void;
}

export class Following {
  readonly #parts: FollowingParts;
  #tidied_ms = Number.NEGATIVE_INFINITY;
  /** Replication lag at the last message of the primary. */
  lag_ms = 0;

  constructor(parts: FollowingParts) {
    this.#parts = parts;
  }

  /** Runs until the signal, and goes on trying when the primary cannot be reached. */
  async run(primary: string, signal: AbortSignal): Promise<void> {
    const { options, identity, directory, events, files, metrics } = this.#parts;
    const { clock, credentials, hostname, candidate = true } = options;
    const peer = new Peer(primary, clock, credentials);
    const { node } = identity.value;
    const disconnected = (): void => {
      metrics.disconnects++;
      files.primary(undefined);
      events.primaryChange({ isPrimary: false });
    };
    const term = (): number => identity.value.term;
    const link = this.#linkEvents(peer);
    await follow({ peer, directory, node, hostname, candidate, clock, term, events: link, disconnected }, signal);
  }

  #linkEvents(peer: Peer): LinkEvents {
    const { options, identity, metrics, transaction, handoff } = this.#parts;
    const { log } = options;
    return {
      connected: (term) => this.#connected(peer, term),
      transaction,
      heard: (at_ms) => this.#heard(at_ms),
      ready: () => {
        identity.complete();
        log(`has everything ${peer.hostname} had`);
      },
      healed: (name, { common, dropped }, kept_at) => {
        metrics.dropped += dropped;
        const since = common === undefined ? "at least " : "";
        const what = `${since}${dropped} transactions that ${peer.hostname} does not have were dropped`;
        log(`${name}: ${what}; copied to ${kept_at}`);
      },
      handoff,
      log,
    };
  }

  #connected(peer: Peer, term: number): void {
    const { identity, options, files, events } = this.#parts;
    const seen = identity.value.term;
    if (term < seen) throw new StaleTerm(`${peer.hostname} is primary of term ${term}, but ${seen} was seen`);
    identity.enter(term, false);
    options.log(`following ${peer.hostname} in term ${term}`);
    files.primary(peer.hostname);
    events.primaryChange({ isPrimary: false, hostname: peer.hostname });
  }

  #heard(primary_ms: number): void {
    if (!Number.isFinite(primary_ms)) return;
    const { clock } = this.#parts.options;
    this.lag_ms = Math.max(0, clock.now() - primary_ms);
    // A primary is heard at least once a second, so what a replica does so often is done from here.
    const now_ms = clock.monotonic();
    if (now_ms - this.#tidied_ms < REPLICATION_LIMITS.tidy_ms) return;
    this.#tidied_ms = now_ms;
    this.#parts.files.lag(this.lag_ms);
    this.#parts.tidy();
  }
}
