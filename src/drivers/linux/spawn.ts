/**
 * Starts programs with `posix_spawn`. Node uses fork, which copies the page tables of the whole process and blocks it:
 * 15 ms for a process of 200 MB. `posix_spawn` shares our memory with the child until it executes the program: less
 * than 1 ms at any size.
 */
import { closeSync, constants, fchownSync, openSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { CallError, call } from "./calls.ts";

/** A descriptor of the program: one of ours, a pipe to us, or nothing. */
export type Descriptor = number | "we read" | "we write" | "nothing";

export interface SpawnOptions {
  /** Its descriptors 0, 1, 2 … */
  stdio: readonly Descriptor[];
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** Owner of its pipes, so that it can open them again as /dev/stdout. */
  owner?: number;
  /** In a new session, so that a hang-up of our terminal does not end it. */
  apart?: boolean;
}

export interface Spawned {
  pid: number;
  /** Our ends of its pipes, by descriptor number. */
  pipes: readonly (Socket | undefined)[];
  /** Its exit code, null after a signal. Call once; until then the pid is not reused. */
  ended(): Promise<number | null>;
}

const CLOEXEC = 0o2000000;
/** Larger than the C library's opaque structures. */
const OPAQUE_BYTES = 512;
const SIGNALS_BYTES = 128;
const FLAG = { SETSIGDEF: 4, SETSIGMASK: 8, SETSID: 0x80 };
const WNOHANG = 1;

const MEMORY = "void *";
const pipe2 = call("pipe2", [MEMORY, "int"]);
const waitpid = call("waitpid", ["int", MEMORY, "int"]);
const spawnp = call("posix_spawnp", [MEMORY, "str", MEMORY, MEMORY, "const char **", "const char **"]);
const actions = {
  init: call("posix_spawn_file_actions_init", [MEMORY]),
  dup: call("posix_spawn_file_actions_adddup2", [MEMORY, "int", "int"]),
  chdir: call("posix_spawn_file_actions_addchdir_np", [MEMORY, "str"]),
  destroy: call("posix_spawn_file_actions_destroy", [MEMORY]),
};
const attributes = {
  init: call("posix_spawnattr_init", [MEMORY]),
  flags: call("posix_spawnattr_setflags", [MEMORY, "short"]),
  defaults: call("posix_spawnattr_setsigdefault", [MEMORY, MEMORY]),
  mask: call("posix_spawnattr_setsigmask", [MEMORY, MEMORY]),
  destroy: call("posix_spawnattr_destroy", [MEMORY]),
};

/** Starts a program found in the PATH of `env`. Uses no shell. */
export function spawnLean(file: string, args: readonly string[], options: SpawnOptions): Spawned {
  const ends = options.stdio.map(openEnd);
  try {
    giveTo(options.owner, ends);
    const pid = start(
      file,
      args,
      ends.map(({ theirs }) => theirs),
      options,
    );
    const pipes = ends.map(({ ours }, number) => {
      const readable = options.stdio[number] === "we read";
      return ours === undefined ? undefined : new Socket({ fd: ours, readable, writable: !readable });
    });
    return { pid, pipes, ended: () => ended(file, pid) };
  } catch (thrown) {
    for (const { ours } of ends) if (ours !== undefined) closeSync(ours);
    throw thrown;
  } finally {
    for (const { theirs, close } of ends) if (close) closeSync(theirs);
  }
}

function giveTo(owner: number | undefined, ends: readonly End[]): void {
  if (owner === undefined) return;
  for (const { theirs, ours } of ends) if (ours !== undefined) fchownSync(theirs, owner, owner);
}

interface End {
  theirs: number;
  /** Whether we must close the program's end, because we opened it. */
  close: boolean;
  ours?: number;
}

function openEnd(wanted: Descriptor): End {
  if (typeof wanted === "number") return { theirs: wanted, close: false };
  if (wanted === "nothing") return { theirs: openSync("/dev/null", constants.O_RDWR), close: true };
  const pair = new Int32Array(2);
  pipe2("", pair, CLOEXEC);
  const [read = -1, write = -1] = pair;
  return wanted === "we read" ? { theirs: write, ours: read, close: true } : { theirs: read, ours: write, close: true };
}

function start(
  file: string,
  args: readonly string[],
  theirs: readonly number[],
  { env = process.env, cwd, apart }: SpawnOptions,
): number {
  const [todo, how, pid] = [new Uint8Array(OPAQUE_BYTES), new Uint8Array(OPAQUE_BYTES), new Int32Array(1)];
  actions.init(file, todo);
  attributes.init(file, how);
  try {
    // Our descriptors have higher numbers than theirs: the low ones are taken from the start.
    for (const [number, fd] of theirs.entries()) actions.dup(file, todo, fd, number);
    if (cwd !== undefined) actions.chdir(file, todo, cwd);
    // Node ignores SIGPIPE; programs expect the default.
    attributes.defaults(file, how, new Uint8Array(SIGNALS_BYTES).fill(0xff));
    attributes.mask(file, how, new Uint8Array(SIGNALS_BYTES));
    attributes.flags(file, how, FLAG.SETSIGDEF | FLAG.SETSIGMASK | (apart ? FLAG.SETSID : 0));
    const variables = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`));
    // posix_spawn returns the error number itself.
    const refused = spawnp(file, pid, file, todo, how, [file, ...args, null], [...variables, null]);
    if (refused !== 0) throw new CallError("start", file, refused);
  } finally {
    actions.destroy(file, todo);
    attributes.destroy(file, how);
  }
  return pid[0] ?? -1;
}

/** Polls for the exit at growing intervals; called when it is imminent. */
async function ended(file: string, pid: number): Promise<number | null> {
  const status = new Int32Array(1);
  for (let wait = 1; waitpid(file, pid, status, WNOHANG) === 0; wait = Math.min(wait * 2, 50)) await pause(wait);
  const [bits = 0] = status;
  return (bits & 0x7f) === 0 ? (bits >> 8) & 0xff : null;
}
