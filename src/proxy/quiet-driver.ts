import type { RuntimeDriver } from "#machines/driver.ts";

/** Resolves when a machine has nothing in progress that came through the front door, or at the latest after so long. */
export type Quiet = (machine_id: string, patience_ms: number, signal: AbortSignal) => Promise<void>;

/**
 * The driver, but a machine is stopped or suspended only when it is quiet: it was taken out of the routing when that
 * was decided, and what it was just doing is answered before its program is told to end. So a deploy costs no request,
 * whatever the program does with its connections when it ends.
 */
export function quietDriver(driver: RuntimeDriver, quiet: Quiet): RuntimeDriver {
  const changed: Pick<RuntimeDriver, "stop" | "suspend"> = {
    async stop(ref, how, signal) {
      await quiet(ref.id, how.timeout_ms, signal);
      return await driver.stop(ref, how, signal);
    },
    async suspend(ref, signal) {
      await quiet(ref.id, Number.POSITIVE_INFINITY, signal);
      return await driver.suspend(ref, signal);
    },
  };
  // All else is the driver's own, also what ports may get later.
  return new Proxy(driver, {
    get(own, name) {
      if (name === "stop" || name === "suspend") return changed[name];
      const value: unknown = Reflect.get(own, name, own);
      return typeof value === "function" ? (value.bind(own) as unknown) : value;
    },
  });
}
