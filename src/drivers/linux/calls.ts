/**
 * The few system calls that Node does not have. They run on the calling thread and are quick; one that waits for a disk
 * is made on another thread (`callLater`), or by a program of its own.
 */

import { closeSync, constants as fsConstants, openSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";

/** Text, numbers, memory, and lists of text that end with null. */
type Value = string | number | bigint | Uint8Array | Int32Array | null | readonly (string | null)[];
interface Native {
  (...args: Value[]): number;
  async(...args: [...Value[], (error: Error | null, result: number) => void]): void;
}
type Call = (subject: string, ...values: Value[]) => number;

interface Ffi {
  /** Null is the running program. */
  load(library: string | null): { func(name: string, result: string, args: string[]): Native };
  errno(): number;
}

/** Finds a function by name, or throws. */
export type Functions = (name: string, result: string, args: string[]) => (...args: unknown[]) => unknown;

/** A system call that failed. `code` is as in Node, such as ENOENT. */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly code: string;
  constructor(call: string, subject: string, errno: number) {
    const code = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
    super(`${call} ${subject}: ${code}`);
    this.code = code;
  }
}

/** Why these calls are not possible on this host, or undefined. */
export function callsMissing(): string | undefined {
  if (process.platform !== "linux") return "this is not Linux";
  try {
    library();
    return undefined;
  } catch {
    return `there is no native package for ${process.arch}`;
  }
}

let loaded: { ffi: Ffi; libc: ReturnType<Ffi["load"]> } | undefined;

function library() {
  if (!loaded) {
    const ffi = createRequire(import.meta.url)(`@koromix/koffi-linux-${process.arch}`) as Ffi;
    loaded = { ffi, libc: ffi.load("libc.so.6") };
  }
  return loaded;
}

/** What the running program itself exports. */
export function ownFunctions(): Functions {
  const { ffi } = library();
  const program = ffi.load(null);
  return (...wanted) => program.func(...wanted) as (...args: unknown[]) => unknown;
}

const WIDE = new Set(["syscall", "lseek", "send", "recv"]);

/**
 * Calls a C library function that returns -1 on failure; `subject` appears in the error. An int result must be read as
 * such, because the upper half of the register is undefined.
 */
export function call(name: string, args: string[], symbol = name): Call {
  const native = functionOf(symbol, args);
  return (subject, ...values) => {
    const result = Number(native()(...values));
    if (result === -1) throw new CallError(name, subject, library().ffi.errno());
    return result;
  };
}

/**
 * Like `call`, on another thread; memory arguments must stay valid until it returns. errno is this call's own: koffi
 * passes it between threads, and it is read before another call.
 */
export function callLater(
  name: string,
  args: string[],
  symbol = name,
): (...given: Parameters<Call>) => Promise<number> {
  const native = functionOf(symbol, args);
  return (subject, ...values) =>
    new Promise((resolve, reject) => {
      native().async(...values, (error, result) => {
        if (error) reject(error);
        else if (Number(result) === -1) reject(new CallError(name, subject, library().ffi.errno()));
        else resolve(Number(result));
      });
    });
}

function functionOf(symbol: string, args: string[]): () => Native {
  let native: Native | undefined;
  return () => {
    native ??= library().libc.func(symbol, WIDE.has(symbol) ? "long" : "int", args);
    return native;
  };
}

// System call numbers from here on are the same on every architecture.
const SYS = {
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  openat2: 437,
  mount_setattr: 442,
};
export const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;

const openTree = call("open_tree", ["long", "int", "str", "uint"], "syscall");
const moveMount = call("move_mount", ["long", "int", "str", "int", "str", "uint"], "syscall");
const mountSetattr = call("mount_setattr", ["long", "int", "str", "uint", "void *", "size_t"], "syscall");
const fsopen = call("fsopen", ["long", "str", "uint"], "syscall");
const fsconfig = call("fsconfig", ["long", "int", "uint", "str", "str", "int"], "syscall");
const fsconfigLater = callLater("mount", ["long", "int", "uint", "str", "str", "int"], "syscall");
const fsmount = call("fsmount", ["long", "int", "uint", "uint"], "syscall");
const openAt2 = call("openat2", ["long", "int", "str", "void *", "size_t"], "syscall");
const mountCall = call("mount", ["str", "str", "str", "ulong", "str"]);
const umountCall = call("umount2", ["str", "int"]);
const ioctlCall = call("ioctl", ["int", "ulong", "void *"]);
const ioctlNumber = call("ioctl", ["int", "ulong", "ulong"]);
const close = call("close", ["int"]);

export const ioctl = (subject: string, fd: number, request: number, data: Uint8Array): number =>
  ioctlCall(subject, fd, request, data);
export const ioctlValue = (subject: string, fd: number, request: number, value: number): number =>
  ioctlNumber(subject, fd, request, value);

export const MS = { RDONLY: 1, NOSUID: 2, NODEV: 4, NOEXEC: 8, SHARED: 1 << 20 };

export function mount(source: string, target: string, type: string, flags: number, options: string): void {
  mountCall(target, source, target, type, flags, options);
}

const MNT_DETACH = 2;
/** Detaches a mount (MNT_DETACH): it ends when nothing uses it any more. */
export function detach(target: string): void {
  umountCall(target, target, MNT_DETACH);
}

const ATTR = { NOSUID: 2n, NODEV: 4n, IDMAP: 0x100000n };
const OPEN_TREE_CLONE = 1;
const CLOEXEC = 0o2000000;
const MOVE_EMPTY_PATH = 4;

/**
 * Bind-mounts `from` at `to`, `nosuid` and `nodev`. With a user namespace the owners are mapped: 0 on disk is the
 * machine's first id.
 * `unlocked` sets neither flag: flags set here are locked in the user namespace, and a bind of
 * files of this mount there fails unless it repeats them.
 */
export function bind(
  from: string,
  to: string,
  { userns, unlocked = false }: { userns?: number; unlocked?: boolean },
): void {
  const tree = openTree(from, SYS.open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | CLOEXEC);
  try {
    const flags = ATTR.NOSUID | ATTR.NODEV;
    const set = (unlocked ? 0n : flags) | (userns === undefined ? 0n : ATTR.IDMAP);
    // struct mount_attr: what is set, what is cleared, propagation, user namespace.
    const attributes = new BigUint64Array([set, unlocked ? flags : 0n, 0n, BigInt(userns ?? 0)]);
    const bytes = new Uint8Array(attributes.buffer);
    mountSetattr(from, SYS.mount_setattr, tree, "", AT_EMPTY_PATH, bytes, bytes.length);
    moveMount(to, SYS.move_mount, tree, "", AT_FDCWD, to, MOVE_EMPTY_PATH);
  } finally {
    close("", tree);
  }
}

const FSOPEN_CLOEXEC = 1;
const FSMOUNT_CLOEXEC = 1;
const FSCONFIG = { string: 1, create: 6 };

/** Mounts a file system whose options exceed one page. */
export function mountWith(type: string, target: string, options: readonly [string, string][], flags: number): void {
  const context = fsopen(type, SYS.fsopen, type, FSOPEN_CLOEXEC);
  try {
    for (const [key, value] of options) fsconfig(key, SYS.fsconfig, context, FSCONFIG.string, key, value, 0);
    fsconfig(type, SYS.fsconfig, context, FSCONFIG.create, null, null, 0);
    const made = fsmount(type, SYS.fsmount, context, FSMOUNT_CLOEXEC, flags);
    try {
      moveMount(target, SYS.move_mount, made, "", AT_FDCWD, target, MOVE_EMPTY_PATH);
    } finally {
      close("", made);
    }
  } finally {
    close("", context);
  }
}

const syncfs = callLater("syncfs", ["int"]);

/** Syncs the file system at `path`, even if it stays mounted elsewhere. */
export async function syncFileSystem(path: string): Promise<void> {
  const fd = openSync(path, fsConstants.O_RDONLY | fsConstants.O_DIRECTORY);
  try {
    await syncfs(path, fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Opens a file system on a device without mounting it: it exists while the descriptor is open. Runs on another thread,
 * because journal recovery may take long.
 */
export async function openFileSystem(type: string, device: string): Promise<number> {
  const context = fsopen(type, SYS.fsopen, type, FSOPEN_CLOEXEC);
  try {
    fsconfig(device, SYS.fsconfig, context, FSCONFIG.string, "source", device, 0);
    await fsconfigLater(device, SYS.fsconfig, context, FSCONFIG.create, null, null, 0);
    return fsmount(device, SYS.fsmount, context, FSMOUNT_CLOEXEC, MS.NOSUID | MS.NODEV);
  } finally {
    close("", context);
  }
}

/** Mounts what `openFileSystem` returned at `target`. */
export function putMount(mount: number, target: string): void {
  moveMount(target, SYS.move_mount, mount, "", AT_FDCWD, target, MOVE_EMPTY_PATH);
}

const RESOLVE = { NO_MAGICLINKS: 2n, IN_ROOT: 0x10n };

/**
 * Opens `path` with the open directory `root` as its root: no link and no `..` leads out of it, even under concurrent
 * changes.
 */
export function openInRoot(root: number, path: string, flags: number, mode = 0): number {
  const how = new BigUint64Array([BigInt(flags | CLOEXEC), BigInt(mode), RESOLVE.IN_ROOT | RESOLVE.NO_MAGICLINKS]);
  const bytes = new Uint8Array(how.buffer);
  return openAt2(path, SYS.openat2, root, path, bytes, bytes.length);
}

const lseek = call("lseek", ["int", "long", "int"]);
const SEEK = { data: 3, hole: 4 };

/** Position of the next data or hole in a sparse file; undefined when there is none. */
export function seekData(fd: number, from: number, what: "data" | "hole"): number | undefined {
  try {
    return lseek("", fd, from, SEEK[what]);
  } catch (thrown) {
    if (thrown instanceof CallError && thrown.code === "ENXIO") return undefined;
    throw thrown;
  }
}
