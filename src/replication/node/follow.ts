/** The replica's loop: follows its primary, with retries when that cannot be reached. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Directory } from "./directory.ts";
import type { Peer } from "./peer.ts";
import { type LinkEvents, ReplicaLink } from "./replica-link.ts";

export interface Follower {
  peer: Peer;
  directory: Directory;
  node: string;
  hostname: string;
  candidate: boolean;
  clock: Clock;
  /** The highest term seen; evaluated each time. */
  term(): number;
  events: LinkEvents;
  /** The connection is over. */
  disconnected(): void;
}

export async function follow(follower: Follower, signal: AbortSignal): Promise<void> {
  const { peer, directory, node, hostname, candidate, clock, events } = follower;
  const distrusted = new Set<string>();
  let said = "";
  while (!signal.aborted) {
    const link = new ReplicaLink({
      peer,
      directory,
      node,
      hostname,
      candidate,
      term: follower.term(),
      distrusted,
      events,
    });
    try {
      await link.run(signal);
    } catch (error) {
      const message = `${peer.hostname}: ${messageOf(error)}`;
      if (message !== said && !signal.aborted) events.log(message);
      said = message;
    }
    follower.disconnected();
    if (!signal.aborted) await clock.sleep(REPLICATION_LIMITS.reconnect_ms, signal).catch(() => undefined);
  }
}
