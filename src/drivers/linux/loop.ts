/** Loop devices: a file seen as a disk. */
import { closeSync, constants, openSync, readdirSync, readFileSync } from "node:fs";
import { CallError, ioctl, ioctlValue, openFileSystem, putMount } from "./calls.ts";

const LOOP_CTL_GET_FREE = 0x4c82;
const LOOP_CONFIGURE = 0x4c0a;
/** The kernel detaches the device with its last user. */
const LO_FLAGS_AUTOCLEAR = 4;
/** struct loop_config: fd, block size, then loop_info64 with its flags; the rest is zero. */
const CONFIG = { bytes: 304, flags: 8 + 52 };
/** Another process may take the free device first; this many times in a row is no accident. */
const TRIES = 64;

/**
 * Opens the ext4 in `file` without mounting it. It exists while the descriptor is open; the device is detached with its
 * last mount, so nothing is left if we are killed.
 */
export async function openDisk(file: string): Promise<number> {
  const backing = openSync(file, constants.O_RDWR);
  try {
    const { device, fd } = attach(file, backing);
    try {
      return await openFileSystem("ext4", device);
    } finally {
      // The file system holds the device from here on; on failure it is released.
      closeSync(fd);
    }
  } finally {
    closeSync(backing);
  }
}

/** Mounts the ext4 file system in `file` at `target`, `nosuid` and `nodev`. */
export async function mountLoop(file: string, target: string): Promise<void> {
  put(await openDisk(file), target);
}

/** Mounts the file system of a device that is attached already, also when it is mounted elsewhere. */
export async function mountDevice(device: string, target: string): Promise<void> {
  put(await openFileSystem("ext4", device), target);
}

function put(disk: number, target: string): void {
  try {
    putMount(disk, target);
  } finally {
    closeSync(disk);
  }
}

function attach(file: string, backing: number): { device: string; fd: number } {
  const control = openSync("/dev/loop-control", constants.O_RDWR);
  try {
    for (let i = 0; i < TRIES; i++) {
      const device = `/dev/loop${ioctlValue("/dev/loop-control", control, LOOP_CTL_GET_FREE, 0)}`;
      const fd = openSync(device, constants.O_RDWR);
      const config = new Uint8Array(CONFIG.bytes);
      const view = new DataView(config.buffer);
      view.setUint32(0, backing, true);
      view.setUint32(CONFIG.flags, LO_FLAGS_AUTOCLEAR, true);
      try {
        ioctl(device, fd, LOOP_CONFIGURE, config);
        return { device, fd };
      } catch (thrown) {
        closeSync(fd);
        if (!(thrown instanceof CallError) || thrown.code !== "EBUSY") throw thrown;
      }
    }
  } finally {
    closeSync(control);
  }
  throw new Error(`no free loop device for ${file}`);
}

/** The device attached to this file, or undefined. It stays attached while mounted in any namespace. */
export function deviceOf(file: string): string | undefined {
  for (const name of readdirSync("/sys/block")) {
    if (!name.startsWith("loop")) continue;
    try {
      if (readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trimEnd() === file) return `/dev/${name}`;
    } catch {
      // Not attached.
    }
  }
  return undefined;
}
