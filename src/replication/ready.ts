/**
 * Tells the program that started a node that applications may start: the node is primary, or a replica with everything that
 * its primary had. Before that an application could make a database that the primary has already.
 */
import { closeSync, writeSync } from "node:fs";
import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import type { EventHub } from "./node/events.ts";

/** What of a node says whether it is ready. */
interface Node {
  readonly events: Pick<EventHub, "status">;
  readonly term: number;
  readonly complete_term: number;
}

export function isReady({ events: { status }, term, complete_term }: Node): boolean {
  return status.isPrimary || (status.hostname !== undefined && complete_term === term);
}

/** Writes a line to the descriptor and closes it, as s6 expects it of a program that notifies. */
export async function notifyWhenReady(
  fd: number,
  node: Node,
  { clock, log }: { clock: Clock; log(message: string): void },
): Promise<void> {
  const { ready_ms, ready_look_ms } = REPLICATION_LIMITS;
  const until_ms = clock.monotonic() + ready_ms;
  while (!isReady(node) && clock.monotonic() < until_ms) await clock.sleep(ready_look_ms);
  if (!isReady(node))
    log(
      "no primary was found in time; applications start, and wait for one when they write to a database that is there",
    );
  writeSync(fd, "\n");
  closeSync(fd);
}
