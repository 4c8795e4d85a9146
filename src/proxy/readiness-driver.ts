import type { RuntimeDriver } from "#machines/runtime/driver.ts";

/** Connects a machine's lifecycle to the edge proxy. Both calls end with the signal, and with a limit of their own. */
export interface ProxyReadiness {
  /** Resolves when the machine's ports are open. */
  opened(machine_id: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the machine has no proxied requests in progress, or after this time. */
  quiet(machine_id: string, patience_ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Wraps a driver so that a machine counts as started once its ports are open, and is stopped or suspended once its
 * requests are finished: it was removed from routing before. So a deploy drops no request, whatever the program does
 * with its connections on exit.
 */
export function readinessDriver(driver: RuntimeDriver, readiness: ProxyReadiness): RuntimeDriver {
  const changed: Pick<RuntimeDriver, "start" | "resume" | "stop" | "suspend"> = {
    async start(launch, signal, extend) {
      const [started] = await Promise.all([driver.start(launch, signal, extend), readiness.opened(launch.id, signal)]);
      return started;
    },
    async resume(launch, handle, signal) {
      const [started] = await Promise.all([driver.resume(launch, handle, signal), readiness.opened(launch.id, signal)]);
      return started;
    },
    async stop(ref, how, signal) {
      await readiness.quiet(ref.id, how.timeout_ms, signal);
      return await driver.stop(ref, how, signal);
    },
    async suspend(ref, signal) {
      await readiness.quiet(ref.id, Number.POSITIVE_INFINITY, signal);
      return await driver.suspend(ref, signal);
    },
  };
  // Passes on all other methods, including future ones.
  return new Proxy(driver, {
    get(own, name) {
      if (Object.hasOwn(changed, name)) return changed[name as keyof typeof changed];
      const value: unknown = Reflect.get(own, name, own);
      return typeof value === "function" ? (value.bind(own) as unknown) : value;
    },
  });
}
