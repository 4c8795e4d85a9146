/**
 * I/O limits of a machine on each of its block devices: `io.max` in cgroup v2, the throttle files of `blkio` in v1.
 * Version 1 does not attribute page cache writes: there, reads and direct writes are limited, buffered writes are not.
 */
import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type IoLimits, NO_IO_LIMITS } from "#core/machine-settings.ts";
import { cgroupDirs, isUnified } from "./cgroup.ts";
import type { MachinePaths } from "./layout.ts";
import type { MachineRecord } from "./record.ts";
import { mountedDevice } from "./stats/disk-stats.ts";

/** Each limit: its name in `io.max`, and its file in version 1. */
const FILES: readonly [keyof IoLimits, string, string][] = [
  ["read_bytes", "rbps", "blkio.throttle.read_bps_device"],
  ["write_bytes", "wbps", "blkio.throttle.write_bps_device"],
  ["read_operations", "riops", "blkio.throttle.read_iops_device"],
  ["write_operations", "wiops", "blkio.throttle.write_iops_device"],
];

const hasLimits = (limits: IoLimits): boolean => Object.values(limits).some((limit) => limit > 0);

/** Why this host cannot enforce these limits, or undefined. */
export function ioProblem(limits: IoLimits): string | undefined {
  if (!hasLimits(limits)) return undefined;
  const { blkio, unified } = cgroupDirs("");
  if (!isUnified()) {
    const there = blkio !== undefined && existsSync(join(blkio, FILES[0]?.[2] ?? ""));
    return there ? undefined : "its blkio cgroup has no throttle files (CONFIG_BLK_DEV_THROTTLING)";
  }
  const controllers = readFileSync(join(unified ?? "", "cgroup.controllers"), "utf8").split(/\s+/);
  return controllers.includes("io") ? undefined : "it has no io cgroup controller";
}

type Machine = Pick<MachineRecord, "layers" | "volume">;

/** Sets a machine's I/O limits, replacing earlier ones. */
export function limitIo(paths: MachinePaths, machine: Machine, limits: IoLimits): void {
  liftIo(paths.cgroup);
  const { read_bytes, read_operations } = limits;
  if (!hasLimits(limits)) return;
  for (const device of ownDisks(paths, machine)) setLimits(paths.cgroup, device, limits);
  // Only reads: throttled writes would block others that wait for the same journal.
  const reads = { ...NO_IO_LIMITS, read_bytes, read_operations };
  for (const device of imageDisks(machine)) setLimits(paths.cgroup, device, reads);
}

/** Lifts the limits: throttled processes can be neither killed nor frozen. */
export function liftIo(cgroup: string): void {
  try {
    for (const device of limitedDevices(cgroup)) setLimits(cgroup, device, NO_IO_LIMITS);
  } catch {
    // The cgroup or disk was removed; nothing is throttled any more.
  }
}

/** Each file lists limited devices, one per line. */
function limitedDevices(cgroup: string): Set<string> {
  const { blkio = "", unified = "" } = cgroupDirs(cgroup);
  const files = isUnified() ? [join(unified, "io.max")] : FILES.map(([, , file]) => join(blkio, file));
  const lines = files.flatMap((file) => (existsSync(file) ? readFileSync(file, "utf8").split("\n") : []));
  return new Set(lines.flatMap((line) => /^\d+:\d+/.exec(line) ?? []));
}

function setLimits(cgroup: string, device: string, limits: IoLimits): void {
  const { blkio = "", unified = "" } = cgroupDirs(cgroup);
  if (isUnified()) {
    const settings = FILES.map(([name, key]) => `${key}=${limits[name] || "max"}`);
    writeFileSync(join(unified, "io.max"), `${device} ${settings.join(" ")}`);
  } else {
    for (const [name, , file] of FILES) writeFileSync(join(blkio, file), `${device} ${limits[name]}`);
  }
}

/** `major:minor` of the root disk and of the volume. */
function ownDisks(paths: MachinePaths, { volume }: Machine): string[] {
  const mounted = [mountedDevice(paths.upper), ...(volume ? [mountedDevice(paths.volume)] : [])];
  const named = volume?.device === undefined ? [] : [numberOf(join("/sys/class/block", basename(volume.device)))];
  return disks([...mounted, ...named]);
}

/** Where the layers of its image are. */
function imageDisks({ layers }: Machine): string[] {
  return disks(layers.map((layer) => deviceNumber(layer)));
}

/**
 * Whole disks without duplicates, because partitions have no limits. Non-block devices (overlayfs, btrfs, FUSE) are
 * omitted.
 */
function disks(numbers: readonly (string | undefined)[]): string[] {
  const devices = numbers.flatMap((number) => {
    const dir = join("/sys/dev/block", number ?? "");
    if (number === undefined || !existsSync(dir)) return [];
    const real = realpathSync(dir);
    return [existsSync(join(real, "partition")) ? (numberOf(dirname(real)) ?? number) : number];
  });
  return [...new Set(devices)];
}

function numberOf(block: string): string | undefined {
  try {
    return readFileSync(join(block, "dev"), "utf8").trim();
  } catch {
    return undefined;
  }
}

/** As `makedev` of the C library packs it. */
function deviceNumber(path: string): string | undefined {
  try {
    const { dev } = statSync(path, { bigint: true });
    const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
    const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
    return `${major}:${minor}`;
  } catch {
    return undefined;
  }
}
