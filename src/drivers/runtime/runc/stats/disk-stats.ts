/** What a machine read from and wrote to its disks, from the counters of the loop devices below them. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DISK_FIELDS, type DiskReadings, fieldsOf, ROOT_DEVICE, VOLUME_DEVICE } from "#metrics/builtin/fields.ts";
import type { MachinePaths } from "../layout.ts";
import type { MachineRecord } from "../record.ts";

type Disks = Pick<MachineRecord, "boot" | "volume">;
type Counted = Record<string, number[]>;

/**
 * Writes down what the loop devices counted for whoever had them before: their numbers go on when they get another
 * file. Done before the machine's first process runs, so that nothing it does is taken for theirs.
 */
export function noteDisks(disks: Disks, paths: MachinePaths): void {
  const devices = countedNow(disks, paths);
  writeFileSync(notes(paths), JSON.stringify({ boot: disks.boot, devices }), { mode: 0o600 });
}

/** The machine's own counts; they survive our restarts, because the notes lie beside its mounts. */
export function disksOf(disks: Disks, paths: MachinePaths): Record<string, DiskReadings> {
  const before = notedFor(disks, paths);
  return Object.fromEntries(
    Object.entries(countedNow(disks, paths)).map(([device, numbers]) => [
      device,
      fieldsOf(DISK_FIELDS, (field, i) => {
        // What is in progress is no count, so there is nothing to take off.
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
    // None, or cut off in the middle by our own end: what others did is counted in, which is wrong but harmless.
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

/** Nothing when it is not there: a device or a machine may go at any moment. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
