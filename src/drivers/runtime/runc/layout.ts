/**
 * Paths and names of everything that a machine has on this host: all derived from the machine's id and the
 * installation's, so that they are found again after a crash, and removed, without a list.
 *
 * Two places. The *data dir* holds what must survive a reboot: the record, the root disk, the memory of a suspended
 * machine, the logs. The *run dir* (`/run/hangar/…`) holds what a reboot ends anyway: mounts, runc's state, pids.
 * Machines run as other users than we do, which must be able to traverse it; the data dir is closed to them.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { dataDirOf, HostClaims } from "#core/host-claims.ts";
import { detach, MS, mount } from "../../linux/calls.ts";
import { deviceName, devicePrefix } from "../../net/names.ts";
import { machinesCgroup } from "./delegation.ts";
import { processCgroup } from "./enclosure.ts";

export interface Layout {
  data: string;
  run: string;
  /** Directories of machines that must survive a reboot. */
  machines: string;
  /** Directories of machines that need not. */
  containers: string;
  logs: string;
  /** Prepared empty root disks. */
  ready: string;
  /** Files that run SQLite nodes in machines. */
  sqlite_node: string;
  /** runc's own state. */
  runc: string;
  /** Where monitors write exit files. */
  exits: string;
  /** CRIU's memory images, on tmpfs. */
  memory: string;
  /** The parent of all machines' cgroups. */
  cgroup: string;
  /** A file for each machine that the fence exempts. */
  unfenced: string;
  node_id: string;
}

export interface MachinePaths {
  /** Survives a reboot. */
  dir: string;
  record: string;
  disk: string;
  /** Copies of image layers with mapped owners, on hosts without idmapped mounts. */
  copies: string;
  /** The memory of a suspended machine, sealed. */
  snapshot: string;
  /** CRIU's memory images on disk, when they do not fit on tmpfs. */
  unsealed: string;
  logs: string;
  log: string;
  /** Does not survive a reboot. */
  run: string;
  bundle: string;
  rootfs: string;
  upper: string;
  lower: string;
  volume: string;
  svc: string;
  /** Where the files of its SQLite node are mounted. */
  sqlite_node: string;
  /** The memory images, as CRIU sees them. */
  images: string;
  pid: string;
  /** The monitor's pid, its pipe for log rotation, and its console socket. */
  monitor_pid: string;
  control: string;
  console: string;
  exit: string;
  runc_log: string;
  runc_state: string;
  /** The cgroup of its processes. */
  cgroup: string;
  /** The cgroup that the fence freezes: the outer one, or the same for a machine started without one. */
  fence_cgroup: string;
  /** Exists while the machine is exempt from the fence. */
  unfenced: string;
  veth: string;
}

/** Of all installations on the host. */
const RUN_DIR = "/run/hangar";

export function layoutOf(data_dir: string, node_id: string): Layout {
  const run = `${RUN_DIR}/${node_id}`;
  return {
    data: data_dir,
    run,
    machines: join(data_dir, "machines"),
    containers: join(run, "m"),
    logs: join(data_dir, "logs"),
    ready: join(data_dir, "ready"),
    sqlite_node: join(data_dir, "sqlite-node"),
    runc: join(run, "runc"),
    exits: join(run, "exits"),
    memory: join(run, "memory"),
    cgroup: machinesCgroup(node_id),
    unfenced: join(run, "unfenced"),
    node_id,
  };
}

/**
 * Kernel objects are found by names with part of the node id: an installation with the same names as another would take
 * over and remove its devices. So names are claimed first.
 */
export function claimDevices({ data, machines, node_id }: Layout): void {
  mkdirSync(machines, { recursive: true, mode: 0o700 });
  const prefix = devicePrefix(node_id);
  const holder = new HostClaims("devices", data).take(prefix, DEVICES_CLAIM);
  if (holder === undefined) return;
  const other = dataDirOf(holder);
  throw new Error(
    `the data dir ${data} is a copy of ${other}, or has the same names by chance (network devices ${prefix}…): both cannot run machines on one host. Remove ${other} when it is not used any more, or run this one on another host`,
  );
}

export const releaseDevices = ({ data, node_id }: Layout): void =>
  new HostClaims("devices", data).release(devicePrefix(node_id), DEVICES_CLAIM);

const DEVICES_CLAIM = "machines";

/** Creates the directories. Those that runc created itself would be inaccessible to the machines' users. */
export function makeLayout(layout: Layout): void {
  openRun(layout.run);
  for (const dir of [
    RUN_DIR,
    layout.run,
    layout.containers,
    layout.runc,
    layout.exits,
    layout.memory,
    layout.unfenced,
  ]) {
    mkdirSync(dir, { recursive: true, mode: 0o711 });
    chmodSync(dir, 0o711);
  }
  for (const dir of [layout.machines, layout.logs]) mkdirSync(dir, { recursive: true, mode: 0o700 });
  // Identifies the owner of a run dir.
  const owner = join(layout.run, DATA_LINK);
  rmSync(owner, { force: true });
  symlinkSync(layout.data, owner);
}

/** In the run dir: a link to the data dir. */
export const DATA_LINK = "data";

/**
 * Mounts the run dir as tmpfs, because runc syncs each of its small files. Shared, so that our unmounts propagate to
 * other mount namespaces, which would keep a machine's disk in use. Not over running machines.
 */
function openRun(run: string): void {
  mkdirSync(run, { recursive: true, mode: 0o711 });
  if (!isMount(run)) {
    // Machines that were started without it continue without it.
    if (readdirSync(run).length > 0) return;
    mount("tmpfs", run, "tmpfs", MS.NOSUID | MS.NODEV, "mode=0711");
  }
  // Each time, because we may have been killed between the two calls.
  mount("", run, "", MS.SHARED, "");
}

const isMount = (dir: string): boolean => statSync(dir).dev !== statSync(join(dir, "..")).dev;

/** Called when nothing of the installation runs any more. */
export function removeRun({ run }: Layout): void {
  if (!existsSync(run)) return;
  if (isMount(run)) detach(run);
  rmSync(run, { recursive: true, force: true });
  try {
    rmdirSync(RUN_DIR);
  } catch {
    // Another installation has its run dir there.
  }
}

export function pathsOf(layout: Layout, id: string): MachinePaths {
  const dir = join(layout.machines, id);
  const run = join(layout.containers, id);
  const logs = join(layout.logs, id);
  const fence_cgroup = `${layout.cgroup}/${id}`;
  return {
    dir,
    record: join(dir, "machine.json"),
    disk: join(dir, "root.ext4"),
    copies: join(dir, "layers"),
    snapshot: join(dir, "snapshot"),
    unsealed: join(dir, "unsealed"),
    logs,
    log: join(logs, "log"),
    run,
    bundle: join(run, "bundle"),
    rootfs: join(run, "rootfs"),
    upper: join(run, "upper"),
    lower: join(run, "lower"),
    volume: join(run, "volume"),
    svc: join(run, "svc"),
    sqlite_node: join(run, "sqlite-node"),
    images: join(layout.memory, id),
    pid: join(run, "pid"),
    monitor_pid: join(run, "monitor.pid"),
    control: join(run, "control"),
    console: join(run, "console"),
    exit: join(layout.exits, id),
    runc_log: join(run, "runc.log"),
    runc_state: join(layout.runc, id),
    cgroup: processCgroup(fence_cgroup),
    fence_cgroup,
    unfenced: join(layout.unfenced, id),
    veth: deviceName(layout.node_id, "v", id),
  };
}
