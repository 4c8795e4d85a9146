/**
 * A loopback device of the test's own and nothing else. A browser gives up whatever it is loading when any network device
 * of the box comes or goes, and those of machines that other tests run do that all the time.
 */
import { spawnSync } from "node:child_process";
import { inside } from "./own-namespace.ts";

const [UNSHARE, ...ARGS] = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"] as const;

/** The same for real machines: they look for their devices in /sys, which shows those of the network it was mounted in. */
const WITH_DEVICES = `set -e
place=$(mktemp -d)
mount -t tmpfs tmpfs "$place"
mkdir "$place/cgroup"
mount --rbind /sys/fs/cgroup "$place/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$place/cgroup" /sys/fs/cgroup
umount -l "$place"
rmdir "$place"
ip link set lo up
exec "$@"`;

/** True when this process should run its tests with real machines, in a network of their own. */
export async function ownMachines(file: string): Promise<boolean> {
  return await inside(["unshare", "--net", "--mount", "sh", "-c", WITH_DEVICES, "sh"], file);
}

/** True when this process should run its tests: in a network of its own, or where there can be none. */
export async function ownNetwork(file: string): Promise<boolean> {
  if (process.platform !== "linux" || spawnSync(UNSHARE, [...ARGS, "true"]).status !== 0) return true;
  return await inside([UNSHARE, ...ARGS], file);
}
