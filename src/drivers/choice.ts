import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { SettingsError } from "#core/setting-values.ts";
import { callsMissing } from "./linux/calls.ts";

export interface DriverChoice {
  name: "runc" | "sim";
  /** Why this driver was chosen, for the operator. */
  reason: string;
}

/** Chooses the driver that runs machines on this host. */
export function chooseDriver(setting: "auto" | "runc" | "sim"): DriverChoice {
  if (setting === "sim") return { name: "sim", reason: "as set; nothing real runs in it" };
  const missing = runcMissing();
  if (!missing)
    return { name: "runc", reason: `real containers, each with users, disk and network of its own${less()}` };
  if (setting === "runc") throw new SettingsError(`driver: runc cannot be used here: ${missing}`);
  return { name: "sim", reason: `nothing real runs in it, because ${missing}` };
}

/** Features that this host lacks. */
function less(): string {
  const missing = lxcfsMissing();
  return missing ? `; they see the host's memory in /proc, because ${missing}` : "";
}

/** Programs that every machine needs, and their packages. */
const PROGRAMS: Record<string, string> = {
  runc: "runc",
  ip: "iproute2",
  "mkfs.ext4": "e2fsprogs",
  unshare: "util-linux",
  umount: "mount",
};
const FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Finds a program on this host: packages differ in whether they install to sbin. */
export const programFile = (name: string): string | undefined =>
  FOLDERS.map((dir) => `${dir}/${name}`).find((file) => existsSync(file));

/** Why runc cannot be used on this host, or undefined. Runs at every start, so it tests little. */
export function runcMissing(): string | undefined {
  if (process.platform !== "linux") return "this is not Linux";
  if (process.getuid?.() !== 0) return "it needs root (start it with sudo)";
  const missing = Object.entries(PROGRAMS).filter(([name]) => !programFile(name));
  if (missing.length > 0) {
    const names = missing.map(([name]) => name).join(" and ");
    return `${names} cannot be found (apt-get install ${[...new Set(missing.map(([, from]) => from))].join(" ")})`;
  }
  if (!existsSync("/dev/loop-control")) return "there are no loop devices (modprobe loop)";
  try {
    accessSync("/run", constants.W_OK);
  } catch {
    return "/run cannot be written to";
  }
  const tried = spawnSync("unshare", ["--user", "--mount", "--net", "true"], { encoding: "utf8" });
  if (tried.status !== 0) {
    return `user namespaces cannot be made here (${tried.stderr.trim() || "sysctl user.max_user_namespaces"})`;
  }
  return callsMissing();
}

/** Why lxcfs is not available on this host, or undefined. */
export function lxcfsMissing(program = programFile("lxcfs")): string | undefined {
  if (!program || !existsSync(program)) return "lxcfs is not installed (apt-get install lxcfs)";
  return existsSync("/dev/fuse") ? undefined : "there is no /dev/fuse (modprobe fuse)";
}
