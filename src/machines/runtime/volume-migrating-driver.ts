import { hostOf } from "../names.ts";
import type { RuntimeDriver } from "./driver.ts";

/** What fetches a volume from the host it is on. */
export interface VolumeMigrator {
  /** Resolves when it is there, or it is clear that it will not come; `extend` is called while it is on its way. */
  migrate(volume_id: string, host_id: string, signal: AbortSignal, extend?: () => void): Promise<void>;
}

/**
 * The driver, but a machine that has moved here starts when its volume is here too: the machine's new place is written
 * down first, and the volume follows it, however often that is broken off and begun again.
 */
export function volumeMigratingDriver(driver: RuntimeDriver, volumes: VolumeMigrator): RuntimeDriver {
  const start: RuntimeDriver["start"] = async (launch, signal, extend) => {
    const volume = launch.config.mounts?.[0]?.volume;
    if (volume !== undefined) await volumes.migrate(volume, hostOf(launch.private_ip), signal, extend);
    return await driver.start(launch, signal, extend);
  };
  // All else is the driver's own, also what ports may get later.
  return new Proxy(driver, {
    get(own, name) {
      if (name === "start") return start;
      const value: unknown = Reflect.get(own, name, own);
      return typeof value === "function" ? (value.bind(own) as unknown) : value;
    },
  });
}
