import { randomBytes } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { removeOutlived } from "../../linux/outlive.ts";
import { openFence } from "./fence.ts";
import { openParts } from "./parts.ts";

/**
 * Ends every machine of an installation whose platform does not run, and removes it from the kernel: processes, mounts,
 * loop devices, network devices, cgroups and rules. What is on disk stays, so that a restarted platform finds its
 * machines stopped. Returns how many there were.
 */
export async function takeDown(of: { data_dir: string; node_id: string; clock: Clock; log: Log }): Promise<number> {
  // Nothing is suspended or resumed, so any key will do.
  const { containers } = openParts({ ...of, images: NO_IMAGES, memory_key: randomBytes(32) });
  // A host whose lease ended has frozen them, and frozen processes cannot exit.
  await openFence(of).end();
  try {
    return (await containers.down()).length;
  } finally {
    await containers.close();
    removeOutlived();
  }
}

/** Nothing is started. */
const NO_IMAGES = {
  resolve: () => Promise.reject(new Error("nothing is started")),
  hold: () => Promise.reject(new Error("nothing is started")),
  release: async () => {},
};
