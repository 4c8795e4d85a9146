import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { ImageLimits } from "../limits.ts";
import { facts, inWords, type Reference } from "../reference.ts";
import { Transient } from "./client.ts";

export interface RetryParts {
  clock: Clock;
  limits: ImageLimits;
}

/**
 * Retries temporary failures. `progress` reports how far an attempt got: attempts that got further than before are not
 * counted, so a large layer over a bad connection succeeds while it advances. An unreachable registry is not retried,
 * unless part of the data has already arrived.
 */
export async function retrying<T>(
  { clock, limits }: RetryParts,
  reference: Reference,
  signal: AbortSignal,
  work: () => Promise<T>,
  progress: () => number = () => 0,
): Promise<T> {
  let best = progress();
  for (let tried = 1; ; tried++) {
    try {
      return await work();
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof Transient)) throw thrown;
      if (progress() > best) tried = 1;
      best = Math.max(best, progress());
      if (tried >= limits.tries || (thrown.is_unreachable && best === 0)) unreachable(reference, thrown);
      const pause = Math.max(limits.retry_ms * 2 ** (tried - 1), thrown.retry_after_ms ?? 0);
      await clock.sleep(Math.min(pause, limits.retry_max_ms), signal);
    }
  }
}

export function unreachable(reference: Reference, cause: Error): never {
  fail("registry_unreachable", `the registry cannot be reached (${cause.message}): ${inWords(reference)}`, {
    facts: facts(reference),
    retry_after_s: 5,
    hint: `check that this box reaches ${reference.registry}, or bring the image along: hangar images import ${reference.given} PATH`,
    cause,
  });
}
