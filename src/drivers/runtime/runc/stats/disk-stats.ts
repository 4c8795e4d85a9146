/** Disk I/O statistics of a machine, from the counters of its loop devices. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DISK_FIELDS, type DiskReadings, fieldsOf, ROOT_DEVICE, VOLUME_DEVICE } from "#metrics/builtin/fields.ts";
import type { MachinePaths } from "../layout.ts";
import type { MachineRecord } from "../record.ts";

type Disks = Pick<MachineRecord, "boot" | "volume">;
type Counted = Record<string, number[]>;

/**
 * Saves the loop devices' counters before the machine's first process runs, because they continue from earlier users.
 */
export function noteDisks(disks: Disks, paths: MachinePaths): void {
  const devices = countedNow(disks, paths);
  writeFileSync(notes(paths), JSON.stringify({ boot: disks.boot, devices }), { mode: 0o600 });
}

/** The machine's own counters; they survive our restarts, because the saved values lie beside its mounts. */
export function disksOf(disks: Disks, paths: MachinePaths): Record<string, DiskReadings> {
  const before = notedFor(disks, paths);
  return Object.fromEntries(
    Object.entries(countedNow(disks, paths)).map(([device, numbers]) => [
      device,
      fieldsOf(DISK_FIELDS, (field, i) => {
        // A gauge, so nothing is subtracted.
        const earlier = field === "io_in_progress" ? 0 : (before[device]?.[i] ?? 0);
        return Math.max(0, (numbers[i] ?? 0) - earlier);
      }),
    ]),
  );
}

const notes = (paths: MachinePaths): string => join(paths.run, "disk-stats.json");

function notedFor(disks: Disks, paths: MachinePaths): Counted {
  try {
    const known = JSON.parse(read(notes(paths))) as { boot: string; devices: Counted };
    return known.boot === disks.boot ? known.devices : {};
  } catch {
    // Missing or truncated: earlier users' counts are included, which is wrong but harmless.
    return {};
  }
}

function countedNow({ volume }: Disks, paths: MachinePaths): Counted {
  const root = mountedDevice(paths.upper);
  return {
    ...(root ? { [ROOT_DEVICE]: numbersOf(join("/sys/dev/block", root)) } : {}),
    ...(volume?.device ? { [VOLUME_DEVICE]: numbersOf(join("/sys/class/block", basename(volume.device))) } : {}),
  };
}

function numbersOf(device: string): number[] {
  return read(join(device, "stat")).trim().split(/\s+/).map(Number).slice(0, DISK_FIELDS.length);
}

/** `major:minor` of what is mounted there. */
export function mountedDevice(dir: string): string | undefined {
  const lines = read("/proc/self/mountinfo").split("\n");
  return lines.map((line) => line.split(" ")).findLast((fields) => fields[4] === dir)?.[2];
}

/** Empty when it does not exist: devices and machines may vanish at any moment. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
