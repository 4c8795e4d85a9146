/**
 * Builds the bundle's config.json, by which runc confines a machine. One table; differences per machine are
 * parameters.
 */
import { readFileSync } from "node:fs";
import { NODE_FOLDER } from "#core/sqlite-node.ts";
import type { NetworkHook } from "../../net/private-network.ts";
import { canLimitSwap, isUnified } from "./cgroup.ts";
import type { MachinePaths } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import { LXCFS_FILES } from "./lxcfs.ts";
import { seccomp } from "./seccomp.ts";
import { BLOCK } from "./uid-blocks.ts";

export interface Confinement {
  paths: MachinePaths;
  hostname: string;
  uid_base: number;
  tty: boolean;
  memory_mb: number;
  swap_mb: number;
  cpus: number;
  shared_cpu: boolean;
  /** CPUs of the host that it is pinned to. */
  cpuset?: readonly number[] | undefined;
  /** Has a cgroup namespace, and its own limits below /sys/fs/cgroup. */
  own_cgroup: boolean;
  /** lxcfs files that are mounted over those of its /proc. */
  lxcfs?: string | undefined;
  volume?: { path: string };
  /** Has a SQLite node of the platform. */
  sqlite_node: boolean;
  sandbox?: "build" | undefined;
  hook: NetworkHook;
}

/** Capabilities of root inside a machine, limited to its user namespace. */
const CAPABILITIES = [
  "CHOWN",
  "DAC_OVERRIDE",
  "FSETID",
  "FOWNER",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "SYS_CHROOT",
  "KILL",
].map((name) => `CAP_${name}`);

/**
 * A build mounts the layers of its own image and keeps files with capabilities. Both are bounded by its user namespace,
 * and the program that runs its steps takes the first away from them.
 */
const BUILD_CAPABILITIES = [...CAPABILITIES, "CAP_SYS_ADMIN", "CAP_SETFCAP", "CAP_MKNOD"];

const TMPFS = ["nosuid", "noexec", "nodev"];
const MOUNTS = [
  { destination: "/proc", type: "proc", source: "proc", options: TMPFS },
  {
    destination: "/dev",
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "strictatime", "mode=755", "size=65536k"],
  },
  {
    destination: "/dev/pts",
    type: "devpts",
    source: "devpts",
    options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
  },
  { destination: "/dev/shm", type: "tmpfs", source: "shm", options: [...TMPFS, "mode=1777", "size=65536k"] },
  { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: TMPFS },
  { destination: "/sys", type: "sysfs", source: "sysfs", options: [...TMPFS, "ro"] },
];

/** With a cgroup namespace this shows only the machine's own cgroup. */
const CGROUPS = { destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: [...TMPFS, "ro"] };

const MASKED = [
  ..."acpi asound kcore keys latency_stats timer_list timer_stats sched_debug scsi sysrq-trigger interrupts"
    .split(" ")
    .map((name) => `/proc/${name}`),
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"];
const NAMESPACES = ["pid", "ipc", "uts", "mount", "network", "user"];

/** null, zero, full, random, urandom, tty, ptmx and the terminals. */
const DEVICES: [number, number?][] = [[1, 3], [1, 5], [1, 7], [1, 8], [1, 9], [5, 0], [5, 2], [136]];

export function ociConfig(machine: Confinement): object {
  const { paths, uid_base, own_cgroup } = machine;
  const map = [{ containerID: 0, hostID: uid_base, size: BLOCK }];
  const files = Math.min(RUNC_LIMITS.open_files, openFilesAllowed());
  return {
    ociVersion: "1.0.2",
    hostname: machine.hostname,
    root: { path: paths.rootfs, readonly: false },
    process: {
      ...guestProcess(["/.svc/init"], ["PATH=/usr/bin:/bin"], "/", machine.sandbox),
      terminal: machine.tty,
      rlimits: [{ type: "RLIMIT_NOFILE", hard: files, soft: Math.min(files, 10_240) }],
    },
    mounts: [...MOUNTS, ...(own_cgroup ? [CGROUPS] : []), ...binds(machine)],
    hooks: { createRuntime: [machine.hook] },
    linux: {
      cgroupsPath: paths.cgroup,
      rootfsPropagation: "rprivate",
      resources: resources(machine),
      namespaces: [...NAMESPACES, ...(own_cgroup ? ["cgroup"] : [])].map((type) => ({ type })),
      uidMappings: map,
      gidMappings: map,
      seccomp: seccomp(machine.sandbox),
      maskedPaths: MASKED,
      // cgroup v1 has a directory per controller on a tmpfs, which runc leaves writable.
      readonlyPaths: [...READONLY, ...(own_cgroup && !isUnified() ? [CGROUPS.destination] : [])],
    },
  };
}

/** A process as the machine's root; also used by `exec`. */
export function guestProcess(args: readonly string[], env: readonly string[], cwd: string, sandbox?: "build") {
  const capabilities = sandbox ? BUILD_CAPABILITIES : CAPABILITIES;
  return {
    user: { uid: 0, gid: 0 },
    args,
    env,
    cwd,
    capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    noNewPrivileges: true,
  };
}

function binds({ paths, volume, lxcfs, sqlite_node, sandbox }: Confinement): object[] {
  const bind = (destination: string, source: string, more: string[]) => ({
    destination,
    type: "bind",
    source,
    options: ["bind", "nosuid", "nodev", ...more],
  });
  return [
    bind("/.svc", paths.svc, ["ro"]),
    ...(sqlite_node ? [bind(NODE_FOLDER, paths.sqlite_node, ["ro"])] : []),
    // Over files of the kernel's own /proc and /sys, which are already mounted, so the image cannot interfere.
    ...(lxcfs === undefined ? [] : LXCFS_FILES.map((file) => bind(file, `${lxcfs}${file}`, ["ro", "noexec"]))),
    ...(volume ? [bind(volume.path, paths.volume, sandbox ? ["rw", "suid", "dev"] : ["rw"])] : []),
  ];
}

function resources({ sandbox, memory_mb, swap_mb, cpus, shared_cpu, cpuset }: Confinement): object {
  const limit = memory_mb * 1024 * 1024;
  return {
    devices: [
      { allow: false, access: "rwm" },
      ...DEVICES.map(([major, minor]) => ({
        allow: true,
        type: "c",
        major,
        ...(minor === undefined ? {} : { minor }),
        access: "rw",
      })),
    ],
    // `swap` is the total of memory and swap.
    memory: { limit, ...(canLimitSwap() ? { swap: limit + swap_mb * 1024 * 1024 } : {}) },
    cpu: {
      quota: Math.round(cpus * 100_000),
      period: 100_000,
      shares: Math.max(2, Math.round(cpus * (shared_cpu ? 256 : 1024))),
      ...(cpuset ? { cpus: cpuset.join(",") } : {}),
    },
    pids: { limit: sandbox ? RUNC_LIMITS.build_pids : RUNC_LIMITS.pids },
  };
}

/** The highest open-file limit that this host permits. */
function openFilesAllowed(): number {
  const line = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  return line?.[1] === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(line?.[1] ?? 1024);
}
