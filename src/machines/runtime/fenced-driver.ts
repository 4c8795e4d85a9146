import type { RuntimeDriver } from "./driver.ts";

/** The host's lease is not held, so nothing is started on it. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * Wraps a driver so that nothing starts while its host's lease is not held. The lease is checked as late as possible,
 * because a process may be paused for minutes between decision and call; what already runs is the fence's job.
 */
export function fencedDriver(driver: RuntimeDriver, holds: () => boolean): RuntimeDriver {
  const check = (): void => {
    if (!holds()) throw new FencedError("the host's lease does not hold");
  };
  return new Proxy(driver, {
    get(target, name) {
      if (name === "start" || name === "resume") {
        const begin = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          check();
          return await begin(...args);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
