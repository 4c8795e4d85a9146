/** What the kernel is told about whole devices, in files. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

/** A setting of the kernel's for one device. A host that does not let us has its own reasons. */
export function setting(name: string, value: string): void {
  try {
    writeFileSync(`/proc/sys/net/${name}`, value);
  } catch {
    // Traffic is then as the host wants it.
  }
}

/**
 * What comes in at this device over IPv6 is passed on. Kernels before 6.17 know this only for all devices at once, and
 * then no longer learn their own default route from routers; those that do are told to go on.
 */
export function passOn(device: string): void {
  const conf = "/proc/sys/net/ipv6/conf";
  if (existsSync(`${conf}/${device}/force_forwarding`)) {
    setting(`ipv6/conf/${device}/force_forwarding`, "1");
    return;
  }
  if (readFileSync(`${conf}/all/forwarding`, "utf8").trim() === "1") return;
  for (const other of readdirSync(conf))
    if (readFileSync(`${conf}/${other}/accept_ra`, "utf8").trim() === "1") setting(`ipv6/conf/${other}/accept_ra`, "2");
  setting("ipv6/conf/all/forwarding", "1");
}
