import { readFileSync, writeSync } from "node:fs";
import { call } from "./calls.ts";

const MFD = { CLOEXEC: 1, ALLOW_SEALING: 2, EXEC: 0x10 };
const F_ADD_SEALS = 1033;
/** Neither longer nor shorter, never written to, and no more seals. */
const ALL_SEALS = 0xf;

const memfd = call("memfd_create", ["str", "uint"]);
const fcntl = call("fcntl", ["int", "int", "int"]);

const made = new Map<string, string>();

/**
 * A copy of a program in memory that nobody can change, and its path. Made once, and there as long as we are.
 *
 * runc copies itself like this at every start, so that a machine's root cannot write to the program it is started by
 * (CVE-2019-5736): 9 MB each time. Started from such a copy it finds that nothing is left to do.
 */
export function sealedCopy(program: string): string {
  const path = made.get(program) ?? copyOf(program);
  made.set(program, path);
  return path;
}

function copyOf(program: string): string {
  const bytes = readFileSync(program);
  try {
    const fd = create(program);
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    fcntl(program, fd, F_ADD_SEALS, ALL_SEALS);
    return `/proc/${process.pid}/fd/${fd}`;
  } catch {
    // A kernel or a host that does not want this: then the program itself is used, and copies itself.
    return program;
  }
}

/** Kernels before 6.3 do not know that a program is meant, and run it anyway. */
function create(name: string): number {
  const flags = MFD.CLOEXEC | MFD.ALLOW_SEALING;
  try {
    return memfd(name, name, flags | MFD.EXEC);
  } catch {
    return memfd(name, name, flags);
  }
}
