/** `poll`, for a thread that waits in system calls. */
import { CallError, call } from "./calls.ts";

const pollCall = call("poll", ["void *", "ulong", "int"]);
const POLLIN = 1;

/** Waits until something can be read, or for `timeout_ms`. Returns whether to try. */
export function readable(fd: number, timeout_ms: number): boolean {
  // struct pollfd: descriptor, requested events, returned events.
  const wanted = Buffer.alloc(8);
  wanted.writeInt32LE(fd);
  wanted.writeInt16LE(POLLIN, 4);
  try {
    return pollCall("poll", wanted, 1, timeout_ms) > 0;
  } catch (thrown) {
    if (thrown instanceof CallError && thrown.code === "EINTR") return false;
    throw thrown;
  }
}
