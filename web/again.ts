/** Reopens a stream when it breaks, with backoff, until it is aborted. */
import { ClientError } from "#client/client.ts";

const RETRY_MS = [100, 500, 1000, 2000, 5000, 10_000];

export interface Rounds {
  /** Opens the stream and reads it to its end; calls `alive` when it works. */
  round(alive: () => void): Promise<void>;
  /** Called when it broke and the first reconnect failed. */
  broken(): void;
}

/** Reconnects until stopped. Returns the refusal that makes retrying pointless, or nothing. */
export async function again({ round, broken }: Rounds, signal: AbortSignal): Promise<ClientError | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await round(() => {
        failures = 0;
      });
    } catch (thrown) {
      if (thrown instanceof ClientError && [401, 403, 404].includes(thrown.http)) return thrown;
    }
    if (signal.aborted) return undefined;
    // Browsers close all connections when a network interface changes. A quick reconnect is not reported.
    if (failures > 0) broken();
    await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0, signal);
  }
  return undefined;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
