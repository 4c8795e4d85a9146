/** Loop devices: a file seen as a disk. */
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { CallError, ioctl, ioctlValue, MS, mount } from "./calls.ts";

const LOOP_CTL_GET_FREE = 0x4c82;
const LOOP_CONFIGURE = 0x4c0a;
const LOOP_CLR_FD = 0x4c01;
/** The device goes away with its last user, so that nobody has to remember it. */
const LO_FLAGS_AUTOCLEAR = 4;
/** struct loop_config: fd, block size, then loop_info64 with its flags; the rest is zero. */
const CONFIG = { bytes: 304, flags: 8 + 52 };
/** Somebody else may take the free device first. More than this many times in a row is no accident. */
const TRIES = 64;

/** Mounts the ext4 file system in `file` at `target`. Answers the device, `/dev/loop7`. */
export function mountLoop(file: string, target: string, options: string): string {
  const backing = openSync(file, constants.O_RDWR);
  try {
    const { device, fd } = attach(file, backing);
    try {
      mount(device, target, "ext4", MS.NOSUID | MS.NODEV, options);
    } catch (thrown) {
      ioctlValue(device, fd, LOOP_CLR_FD, 0);
      throw thrown;
    } finally {
      // The mount holds the device from here on.
      closeSync(fd);
    }
    return device;
  } finally {
    closeSync(backing);
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

/** The device that is mounted at `target`, or undefined. */
export function deviceAt(target: string): string | undefined {
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    if (before.split(" ")[4] === target) return after.split(" ")[1];
  }
  return undefined;
}

export const deviceName = (device: string): string => basename(device);
