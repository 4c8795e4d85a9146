/** Kernel settings (sysctl) of network devices. */
import { writeFileSync } from "node:fs";

/** A setting of the kernel's for one device. A host that does not let us has its own reasons. */
export function setting(name: string, value: string): void {
  try {
    writeFileSync(`/proc/sys/net/${name}`, value);
  } catch {
    // Traffic is then as the host wants it.
  }
}
