/** Removes an installation whose platform does not run from the kernel, and checks the kernel for leftovers. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { KernelInventory } from "#core/kernel-objects.ts";
import type { Log } from "#core/log.ts";
import { BuildCaches } from "./builds/build-caches.ts";
import { takeDownVolumes } from "./disk/down.ts";
import { type Installation, kernelInventory } from "./inventory/inventory.ts";
import { takeDown } from "./runtime/runc/down.ts";
import { suspendProbeOf } from "./runtime/runc/suspend/suspend-probe.ts";

/** The kernel removes loop and network devices asynchronously. */
const SETTLE_MS = 3000;
const LOOK_MS = 50;

export interface TakenDown extends KernelInventory {
  machines: number;
  volumes: number;
  /** What could not be removed, for display. */
  problems: string[];
}

export async function takeDownInstallation(of: Installation & { clock: Clock; log: Log }): Promise<TakenDown> {
  const { clock } = of;
  const installations = [of, suspendProbeOf(of)].filter(({ data_dir }) => existsSync(data_dir));
  const seen = await Promise.all(installations.map((one) => kernelInventory(one)));
  const before = new Set(seen.flatMap(({ devices }) => [...devices]));
  const problems: string[] = [];
  const attempt = async (work: () => Promise<number>): Promise<number> => {
    try {
      return await work();
    } catch (thrown) {
      problems.push(messageOf(thrown));
      return 0;
    }
  };
  const [machines = 0] = await Promise.all(installations.map((one) => attempt(() => takeDown({ ...of, ...one }))));
  const volumes = await attempt(() => takeDownVolumes(join(of.data_dir, "volumes")));
  // Disks of builds that the platform was killed in.
  await attempt(async () => {
    await BuildCaches.in(of.data_dir).clear();
    return 0;
  });
  for (const end = clock.monotonic() + SETTLE_MS; ; await clock.sleep(LOOK_MS)) {
    const left = await Promise.all(installations.map((one) => kernelInventory(one, { before })));
    const objects = left.flatMap((one) => one.objects);
    const unseen = [...new Set(left.flatMap((one) => one.unseen))];
    if (objects.length === 0 || clock.monotonic() > end) return { machines, volumes, problems, objects, unseen };
  }
}
