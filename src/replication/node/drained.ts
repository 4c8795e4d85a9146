import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { ProxyStatus } from "./types.ts";

/**
 * Hands over when the application has answered what it is working on: a request would find its database locked, or wait in
 * vain to be acknowledged here. Requests that come meanwhile wait in the proxy for the next primary.
 */
export async function drained(
  { proxy, clock }: { proxy: ProxyStatus | undefined; clock: Clock },
  handOver: () => Promise<void>,
): Promise<void> {
  if (!proxy) {
    await handOver();
    return;
  }
  proxy.draining = true;
  try {
    const until_ms = clock.monotonic() + REPLICATION_LIMITS.proxy_drain_ms;
    while (proxy.writing > 0 && clock.monotonic() < until_ms) await clock.sleep(1);
    await handOver();
  } finally {
    proxy.draining = false;
  }
}
