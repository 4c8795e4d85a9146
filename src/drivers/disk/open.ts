import type { VolumeDisk } from "#volumes/disk.ts";
import { LoopDisk } from "./loop.ts";
import type { PoolChoice } from "./pool.ts";
import { SimDisk } from "./sim.ts";

export interface DiskChoice {
  /** `auto`: real volumes for real machines. */
  disk: "auto" | "loop" | "sim";
  pool: PoolChoice;
  dir: string;
}

/** The volume disk that matches the machine driver, unless one is configured. */
export function openDisk({ disk, pool, dir }: DiskChoice, driver: string): VolumeDisk {
  const real = disk === "loop" || (disk === "auto" && driver === "runc");
  return real ? new LoopDisk({ dir, pool }) : new SimDisk(dir);
}
