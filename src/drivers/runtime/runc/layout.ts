/**
 * Where everything about a machine is, and what it is called on this host: all of it made from the machine's id and
 * this installation's, so that it is found again after a crash, and cleared away, without a list.
 *
 * Two places. The *data dir* holds what must survive a reboot: the record, the root disk, the memory of a suspended
 * machine, the logs. The *run dir* (`/run/hangar/…`) holds what a reboot ends anyway: mounts, runc's state, pids.
 * Machines run as other users than we do, and those must be able to walk in; a data dir is closed to them.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { dataDirOf, HostClaims } from "#core/host-claims.ts";
import { detach, MS, mount } from "../../linux/calls.ts";
import { deviceName, devicePrefix } from "../../net/names.ts";
import { machinesCgroup } from "./delegation.ts";
import { processCgroup } from "./enclosure.ts";

export interface Layout {
  data: string;
  run: string;
  /** Folders of machines that must survive a reboot. */
  machines: string;
  /** Folders of machines that need not. */
  containers: string;
  logs: string;
  /** Empty root disks that wait for their machines. */
  ready: string;
  /** runc's own state. */
  runc: string;
  /** Where monitors leave word of each end. */
  exits: string;
  /** Folders of memory images that CRIU writes or reads, in memory. */
  memory: string;
  /** The parent of all machines' cgroups. */
  cgroup: string;
  /** A file for each machine that the fence leaves alone. */
  unfenced: string;
  node_id: string;
}

export interface MachinePaths {
  /** Survives a reboot. */
  dir: string;
  record: string;
  disk: string;
  /** Layers of its image with other owners, on a host that cannot show them so. */
  copies: string;
  /** The memory of a suspended machine, sealed. */
  snapshot: string;
  /** The memory images that CRIU writes or reads, where memory has no room for them. */
  unsealed: string;
  logs: string;
  log: string;
  /** Does not. */
  run: string;
  bundle: string;
  rootfs: string;
  upper: string;
  lower: string;
  volume: string;
  svc: string;
  /** The memory images, as CRIU sees them. */
  images: string;
  pid: string;
  /** The monitor's own number, the pipe by which it is told that its log was set aside, and where it gets a terminal. */
  monitor_pid: string;
  control: string;
  console: string;
  exit: string;
  runc_log: string;
  runc_state: string;
  /** Where its processes are. */
  cgroup: string;
  /** What the fence freezes: the cgroup around it, or the same for a machine that was started without one. */
  fence_cgroup: string;
  /** There while the fence leaves it alone. */
  unfenced: string;
  veth: string;
}

export function layoutOf(data_dir: string, node_id: string): Layout {
  const run = `/run/hangar/${node_id}`;
  return {
    data: data_dir,
    run,
    machines: join(data_dir, "machines"),
    containers: join(run, "m"),
    logs: join(data_dir, "logs"),
    ready: join(data_dir, "ready"),
    runc: join(run, "runc"),
    exits: join(run, "exits"),
    memory: join(run, "memory"),
    cgroup: machinesCgroup(node_id),
    unfenced: join(run, "unfenced"),
    node_id,
  };
}

/**
 * What is in the kernel is found by names that begin with a part of the node id: an installation whose names are another's
 * would take that one's devices for its own, and take them away. So they are claimed before anything is looked for.
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

/** Makes the folders. A folder that runc made itself would be closed to the machines' users. */
export function makeLayout(layout: Layout): void {
  openRun(layout.run);
  for (const dir of [
    "/run/hangar",
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
  // Whoever finds the run dir of an installation sees whose it is.
  const owner = join(layout.run, DATA_LINK);
  rmSync(owner, { force: true });
  symlinkSync(layout.data, owner);
}

/** In the run dir: a link to the data dir. */
export const DATA_LINK = "data";

/**
 * The run dir is a mount of our own. In memory, because runc waits until each of its small files is on the disk.
 * Shared, so that what we unmount below it goes as well where other processes of the host have copies of all mounts; a
 * machine's disk would stay in use as long as such a process runs. Not over the head of machines that run.
 */
function openRun(run: string): void {
  mkdirSync(run, { recursive: true, mode: 0o711 });
  if (!isMount(run)) {
    // Machines that were started without it go on without it.
    if (readdirSync(run).length > 0) return;
    mount("tmpfs", run, "tmpfs", MS.NOSUID | MS.NODEV, "mode=0711");
  }
  // Each time: we may have been killed between the two.
  mount("", run, "", MS.SHARED, "");
}

const isMount = (dir: string): boolean => statSync(dir).dev !== statSync(join(dir, "..")).dev;

/** Nothing of the installation runs any more. */
export function removeRun({ run }: Layout): void {
  if (!existsSync(run)) return;
  if (isMount(run)) detach(run);
  rmSync(run, { recursive: true, force: true });
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
