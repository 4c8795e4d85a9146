/**
 * Builds the small native programs for both architectures (Debian: gcc, gcc-aarch64-linux-gnu). What it
 * writes is kept in the repository, so that a box that runs Hangar needs no compiler; see docs/adr/0005.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

export const NATIVE = join(import.meta.dirname, "../src/drivers/runtime/runc/native");

const COMPILERS = { x64: "x86_64-linux-gnu-gcc", arm64: "aarch64-linux-gnu-gcc" };
const COMMON = [
  ..."-Os -Wall -Wextra -Werror -nostdlib -ffreestanding -fno-stack-protector -s".split(" "),
  // Without these the compiler writes calls to a C library that is not there, or bytes that differ from run to run.
  ..."-fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns".split(" "),
  "-Wl,--build-id=none,-z,noexecstack,-z,norelro,-z,max-page-size=4096",
];
const PROGRAMS = {
  init: [..."-static -fno-pie -no-pie".split(" "), "init.c"],
  terminal: [..."-static -fno-pie -no-pie".split(" "), "terminal.c"],
  hook: [..."-static -fno-pie -no-pie".split(" "), "hook.c"],
  monitor: [..."-static -fno-pie -no-pie".split(" "), "monitor.c"],
  files: [..."-static -fno-pie -no-pie".split(" "), "files.c"],
  dial: [..."-static -fno-pie -no-pie".split(" "), "dial.c"],
  rebind: [..."-static -fno-pie -no-pie".split(" "), "rebind.c"],
  "criu-shim.so": [..."-shared -fPIC".split(" "), "criu-shim.c"],
};

/** Builds one program; answers the compiler's words when it could not. */
export function buildNative(program: string, arch: string, to: string): string | undefined {
  const compiler = COMPILERS[arch as keyof typeof COMPILERS];
  const [source = "", ...flags] = [...PROGRAMS[program as keyof typeof PROGRAMS]].reverse();
  const args = [...COMMON, ...flags, "-o", to, join(NATIVE, source)];
  const { status, stderr, error } = spawnSync(compiler, args, { encoding: "utf8" });
  return status === 0 ? undefined : (error?.message ?? stderr);
}

export const ARCHES = Object.keys(COMPILERS);
export const PROGRAM_NAMES = Object.keys(PROGRAMS);

if (process.argv[1] === import.meta.filename) {
  for (const arch of ARCHES) {
    mkdirSync(join(NATIVE, arch), { recursive: true });
    for (const program of PROGRAM_NAMES) {
      const problem = buildNative(program, arch, join(NATIVE, arch, program));
      if (problem) throw new Error(`${program} for ${arch}: ${problem}`);
    }
  }
}
