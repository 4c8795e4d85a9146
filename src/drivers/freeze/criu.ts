/**
 * CRIU, which checkpoints a process tree with its memory and connections to files, and restores it from them. runc
 * calls it by name, so a directory with a wrapper of that name goes first in the PATH:
 *
 * - Kernels since 6.16 refuse a socket option that CRIU before 4.2 reads of every socket; a small library answers it.
 * - CRIU 3.17 does not restore `no_new_privs`; restored processes inherit it from CRIU itself.
 * - Its cache of kernel features is redirected to memory.
 * - During a checkpoint the machine's network is locked with nftables; the other method leaves rules behind.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { program } from "../linux/program.ts";

const CRIU = ["/usr/sbin/criu", "/usr/local/sbin/criu", "/usr/bin/criu"];
/** Keeps open connections and file locks; the network is created again and connected by a hook. */
export const FILE_LOCKS = "--file-locks";
export const CRIU_OPTIONS = ["--tcp-established", FILE_LOCKS, "--empty-ns", "network"];
const CONFIG = "network-lock nftables\n";

export interface Criu {
  /** First in the PATH of callers of CRIU. */
  bin: string;
  version: string;
}

/** Creates the wrapper in `dir`; `run` is in memory. Undefined when CRIU is not installed. */
export async function openCriu(dir: string, shim: string, run: string): Promise<Criu | undefined> {
  const real = CRIU.find((file) => existsSync(file));
  if (!real) return undefined;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const config = join(dir, "criu.conf");
  writeFileSync(config, CONFIG);
  const wrapper = join(dir, "criu");
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = [
    "#!/bin/sh",
    `export CRIU_CONFIG_FILE=${quoted(config)} LD_PRELOAD=${quoted(shim)} HANGAR_RUN=${quoted(run)}`,
    `exec setpriv --no-new-privs -- ${real} "$@"`,
  ];
  writeFileSync(wrapper, `${lines.join("\n")}\n`, { mode: 0o700 });
  const version = /Version: (\S+)/.exec(await program(real, ["--version"]))?.[1] ?? "unknown";
  return { bin: dir, version };
}

/** A harmless error of CRIU on hosts whose root may not raise limits. */
const NOISE = /RLIMIT_NOFILE/;

/** The first error in CRIU's log, which says more than the last one. */
export function complaint(log: string): string | undefined {
  try {
    const errors = readFileSync(log, "utf8").matchAll(/Error \([^)]*\): (.*)/g);
    const lines = [...errors].map(([, line = ""]) => line.replaceAll(/`- |\s+/g, " ").trim());
    return lines.find((line) => !NOISE.test(line));
  } catch {
    return undefined;
  }
}

/** Makes the files of a directory durable. */
export async function settleOnDisk(files: readonly string[]): Promise<void> {
  await Promise.all(
    files.map(async (file) => {
      await using handle = await open(file, "r");
      await handle.sync();
    }),
  );
}
