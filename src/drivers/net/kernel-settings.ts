/** Kernel settings (sysctl) of network devices. */
import { writeFileSync } from "node:fs";

/** Sets a kernel setting of one device, where the host permits it. */
export function setting(name: string, value: string): void {
  try {
    writeFileSync(`/proc/sys/net/${name}`, value);
  } catch {
    // Not permitted: the host's own setting applies.
  }
}
