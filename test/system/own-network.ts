/**
 * A loopback device of the test's own and nothing else. A browser gives up whatever it is loading when any network device
 * of the box comes or goes, and those of machines that other tests run do that all the time.
 */
import { spawnSync } from "node:child_process";
import { inside } from "./own-namespace.ts";

const [UNSHARE, ...ARGS] = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"] as const;

/** True when this process should run its tests: in a network of its own, or where there can be none. */
export async function ownNetwork(file: string): Promise<boolean> {
  if (process.platform !== "linux" || spawnSync(UNSHARE, [...ARGS, "true"]).status !== 0) return true;
  return await inside([UNSHARE, ...ARGS], file);
}
