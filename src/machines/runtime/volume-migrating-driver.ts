import { hostOf } from "../names.ts";
import type { RuntimeDriver } from "./driver.ts";

/** Moves a volume from the host it is on. */
export interface VolumeMigrator {
  /** Resolves when the volume is local or cannot be moved; `extend` is called while it is in transit. */
  migrate(volume_id: string, host_id: string, signal: AbortSignal, extend?: () => void): Promise<void>;
}

/**
 * Wraps a driver so that a machine that moved here starts after its volume has arrived. The machine's new host is
 * stored first and the volume follows, however often the transfer is interrupted.
 */
export function volumeMigratingDriver(driver: RuntimeDriver, volumes: VolumeMigrator): RuntimeDriver {
  const start: RuntimeDriver["start"] = async (launch, signal, extend) => {
    const volume = launch.config.mounts?.[0]?.volume;
    if (volume !== undefined) await volumes.migrate(volume, hostOf(launch.private_ip), signal, extend);
    return await driver.start(launch, signal, extend);
  };
  // Passes on all other methods, including future ones.
  return new Proxy(driver, {
    get(own, name) {
      if (name === "start") return start;
      const value: unknown = Reflect.get(own, name, own);
      return typeof value === "function" ? (value.bind(own) as unknown) : value;
    },
  });
}
