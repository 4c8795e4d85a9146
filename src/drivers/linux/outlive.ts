/**
 * systemd ends a service with everything in its cgroup. What has to go on without the platform (the monitors of machines,
 * lxcfs, the guard, the programs behind encrypted volumes and WireGuard) is therefore started in a cgroup outside of the
 * service, so that `systemctl stop`, `restart` and `kill` reach the platform alone.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** Below the root of the hierarchy by which systemd knows a service's processes. */
const GROUP = "hangar-helpers";

/** Moves itself, then becomes the program: no moment in which the program runs inside the service. */
const MOVE =
  'count=$1; shift; while [ "$count" -gt 0 ]; do echo 0 > "$1"; shift; count=$((count - 1)); done; exec "$@"';

/** What the kernel says about this process: `/proc/self/cgroup` and `/proc/self/mountinfo`. */
export interface OwnCgroups {
  cgroup: string;
  mountinfo: string;
}

/** Where helpers go once a part of systemd's tree has been given to us. */
let given: readonly string[] | undefined;

export function keepHelpersIn(groups: readonly string[]): void {
  given = groups;
}

/** The words that start a program so that it outlives a service we are part of; the same words where we are in none. */
export function outliving(words: readonly string[], groups = givenGroups() ?? groupsOutside()): string[] {
  if (groups.length === 0) return [...words];
  for (const group of groups) mkdirSync(group, { recursive: true });
  const files = groups.map((group) => join(group, "cgroup.procs"));
  return ["/bin/sh", "-c", MOVE, "hangar-outlive", String(files.length), ...files, ...words];
}

const givenGroups = (): readonly string[] | undefined =>
  given?.every((group) => existsSync(group)) ? given : undefined;

/** Takes the cgroup away when nothing is in it any more; called from wherever `hangar down` runs. */
export function removeOutlived(groups = everyGroup()): void {
  for (const group of groups) {
    try {
      rmdirSync(group);
    } catch {
      // It is not there, or another installation on this host has helpers in it.
    }
  }
}

/**
 * Where helpers go: one folder for each hierarchy in which systemd put us into a service. Version 1 has a tree of
 * systemd's own for that, version 2 the one tree, and a host between the two has both.
 */
export function groupsOutside(own: OwnCgroups = ownCgroups()): string[] {
  if (process.getuid?.() !== 0) return [];
  return own.cgroup.split("\n").flatMap((line) => {
    // `id:controllers:path`; the path may have colons of its own. Version 2 has no controllers here.
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    return /\.service(\/|$)/.test(path) ? groupOf(controllers, own.mountinfo) : [];
  });
}

/** What /proc/self/cgroup calls the hierarchies that systemd may keep services in. */
const ALL_HIERARCHIES = ["", "name=systemd"] as const;

const everyGroup = (): string[] =>
  ALL_HIERARCHIES.flatMap((controllers) => groupOf(controllers, ownCgroups().mountinfo));

/** Our folder in a hierarchy; empty where it is not mounted, or not systemd's. */
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
