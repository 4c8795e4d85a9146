import type { RuntimeDriver } from "#machines/runtime/driver.ts";

/** What a machine's life has to do with the edge proxy. Both end by the signal, and by a limit of their own. */
export interface ProxyReadiness {
  /** Resolves when somebody listens on the machine's ports. */
  opened(machine_id: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the machine has nothing in progress that came through them, or at the latest after so long. */
  quiet(machine_id: string, patience_ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * The driver, but a machine runs only when its ports are open, so that whoever is told that it runs can reach it. And it
 * is stopped or suspended only when it is quiet: it was taken out of the routing when that was decided, and what it was
 * just doing is answered before its program is told to end. So a deploy costs no request, whatever the program does with
 * its connections when it ends.
 */
export function readinessDriver(driver: RuntimeDriver, door: ProxyReadiness): RuntimeDriver {
  const changed: Pick<RuntimeDriver, "start" | "resume" | "stop" | "suspend"> = {
    async start(launch, signal, extend) {
      const [started] = await Promise.all([driver.start(launch, signal, extend), door.opened(launch.id, signal)]);
      return started;
    },
    async resume(launch, handle, signal) {
      const [started] = await Promise.all([driver.resume(launch, handle, signal), door.opened(launch.id, signal)]);
      return started;
    },
    async stop(ref, how, signal) {
      await door.quiet(ref.id, how.timeout_ms, signal);
      return await driver.stop(ref, how, signal);
    },
    async suspend(ref, signal) {
      await door.quiet(ref.id, Number.POSITIVE_INFINITY, signal);
      return await driver.suspend(ref, signal);
    },
  };
  // All else is the driver's own, also what ports may get later.
  return new Proxy(driver, {
    get(own, name) {
      if (Object.hasOwn(changed, name)) return changed[name as keyof typeof changed];
      const value: unknown = Reflect.get(own, name, own);
      return typeof value === "function" ? (value.bind(own) as unknown) : value;
    },
  });
}
