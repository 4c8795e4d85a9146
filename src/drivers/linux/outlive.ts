/**
 * systemd ends a service with everything in its cgroup. Programs that must outlive the platform (the monitors of
 * machines, lxcfs, the guard, the programs behind encrypted volumes and WireGuard) are therefore started in a cgroup
 * outside the service, so that `systemctl stop`, `restart` and `kill` affect the platform only.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** Below the root of the hierarchy in which systemd tracks services. */
const GROUP = "hangar-helpers";

/** Moves itself, then executes the program, so that it never runs inside the service. */
const MOVE =
  'count=$1; shift; while [ "$count" -gt 0 ]; do echo 0 > "$1"; shift; count=$((count - 1)); done; exec "$@"';

/** What the kernel says about this process: `/proc/self/cgroup` and `/proc/self/mountinfo`. */
export interface OwnCgroups {
  cgroup: string;
  mountinfo: string;
}

/** The cgroup for helpers after systemd delegated one to us. */
let given: readonly string[] | undefined;

export function keepHelpersIn(groups: readonly string[]): void {
  given = groups;
}

/** Wraps a command so that the program survives the service we are part of; unchanged outside a service. */
export function outliving(argv: readonly string[], groups = givenGroups() ?? groupsOutside()): string[] {
  if (groups.length === 0) return [...argv];
  for (const group of groups) mkdirSync(group, { recursive: true });
  const files = groups.map((group) => join(group, "cgroup.procs"));
  return ["/bin/sh", "-c", MOVE, "hangar-outlive", String(files.length), ...files, ...argv];
}

const givenGroups = (): readonly string[] | undefined =>
  given?.every((group) => existsSync(group)) ? given : undefined;

/** Removes the cgroup if it is empty; called by `hangar down`. */
export function removeOutlived(groups = everyGroup()): void {
  for (const group of groups) {
    try {
      rmdirSync(group);
    } catch {
      // It does not exist, or another installation has helpers in it.
    }
  }
}

/**
 * Directories for helpers: one per hierarchy in which systemd put us into a service. cgroup v1 has a systemd hierarchy,
 * v2 the unified one, and a hybrid host both.
 */
export function groupsOutside(own: OwnCgroups = ownCgroups()): string[] {
  if (process.getuid?.() !== 0) return [];
  return own.cgroup.split("\n").flatMap((line) => {
    // `id:controllers:path`; the path may have colons of its own. Version 2 has no controllers here.
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    return /\.service(\/|$)/.test(path) ? groupOf(controllers, own.mountinfo) : [];
  });
}

/** Names in /proc/self/cgroup of hierarchies in which systemd may track services. */
const ALL_HIERARCHIES = ["", "name=systemd"] as const;

const everyGroup = (): string[] =>
  ALL_HIERARCHIES.flatMap((controllers) => groupOf(controllers, ownCgroups().mountinfo));

/** Our directory in a hierarchy; empty where it is not mounted, or not systemd's. */
function groupOf(controllers: string, mountinfo: string): string[] {
  if (!ALL_HIERARCHIES.some((known) => known === controllers)) return [];
  const found = mountinfo
    .split("\n")
    .map((line) => line.split(" - "))
    .find(([, after = ""]) => {
      const [type, , options = ""] = after.split(" ");
      return controllers === "" ? type === "cgroup2" : type === "cgroup" && options.split(",").includes(controllers);
    });
  const mount = found?.[0]?.split(" ")[4];
  return mount === undefined ? [] : [join(mount, GROUP)];
}

let known: OwnCgroups | undefined;

/** A process does not change its service. */
function ownCgroups(): OwnCgroups {
  const read = (name: string): string => {
    try {
      return readFileSync(`/proc/self/${name}`, "utf8");
    } catch {
      return "";
    }
  };
  known ??= { cgroup: read("cgroup"), mountinfo: read("mountinfo") };
  return known;
}
