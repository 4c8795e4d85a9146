/**
 * An outer cgroup around a machine's own, for the fence only. Freezing applies to the whole subtree: processes thawed,
 * restored or forked inside do not run while the outer cgroup is frozen, so nothing can run between the check of the
 * lease and a start. It must exist before that check; a host that shares no machines with others has no fence, and no
 * outer cgroups.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { processesIn } from "./cgroup.ts";
import { freezeFile } from "./suspend/cgroup-freeze.ts";

const INNER = "m";

/** The outer cgroup of machines on a host with a lease. */
export interface Enclosing {
  /** Whether the host's lease is held; otherwise nothing starts. */
  holds(): boolean;
}

/** The host's lease ended while a machine was starting. */
export class LeaseOverError extends Error {
  override readonly name = "LeaseOverError";
}

const dirOf = (cgroup: string): string => dirname(freezeFile(cgroup).file);

/** The cgroup of a machine's processes. */
export function processCgroup(fence_cgroup: string): string {
  const inner = `${fence_cgroup}/${INNER}`;
  return existsSync(dirOf(inner)) ? inner : fence_cgroup;
}

/** Creates the outer cgroup, but not around existing processes, which would be looked for inside. */
export function enclose(fence_cgroup: string): boolean {
  if (processesIn(fence_cgroup).length > 0) return false;
  mkdirSync(join(dirOf(fence_cgroup), INNER), { recursive: true });
  return true;
}

/** Called when everything is prepared and before anything runs. */
export function checkLease(enclosing: Enclosing | undefined): void {
  if (enclosing && !enclosing.holds()) throw new LeaseOverError("the host's lease is over");
}
