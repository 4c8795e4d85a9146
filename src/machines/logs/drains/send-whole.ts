/** Sends a batch of which a receiver may refuse some lines for good. */
import { MACHINE_LIMITS } from "../../limits.ts";
import type { DrainLine, Outcome } from "./types.ts";

type Sent =
  | { done: true; sent: number; refused: number; reason?: string }
  | { done: false; reason: string; retry_after_ms?: number };

/**
 * Halves what is refused until it is a single line, so that one line that a receiver never takes does not hold up all
 * others, and a batch that is too large arrives in parts. What is refused after that many requests is given up.
 */
export async function sendWhole(
  send: (lines: readonly DrainLine[]) => Promise<Outcome>,
  lines: readonly DrainLine[],
): Promise<Sent> {
  const parts = [lines];
  let [sent, refused, requests] = [0, 0, 0];
  let reason: string | undefined;
  for (let part = parts.shift(); part; part = parts.shift()) {
    const outcome = await send(part);
    requests++;
    if (outcome.taken) {
      sent += part.length - outcome.refused;
      refused += outcome.refused;
    } else if (!("refuses" in outcome)) return { done: false, ...outcome };
    else if (part.length > 1 && requests < MACHINE_LIMITS.drain_splits) {
      const middle = Math.ceil(part.length / 2);
      parts.unshift(part.slice(0, middle), part.slice(middle));
    } else refused += part.length;
    reason = outcome.reason || reason;
  }
  return { done: true, sent, refused, ...(reason === undefined ? {} : { reason }) };
}
