import type { RuntimeDriver } from "./driver.ts";

/** The host is not ours at the moment: nothing is begun on it. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * A driver that begins nothing while its host's lease does not hold. It is asked as late as can be, since a process
 * may have been stopped for minutes between deciding and doing; what runs already is for the fence to stop.
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
