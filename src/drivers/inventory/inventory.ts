/**
 * Lists everything that one installation has in the kernel, read from the kernel itself: names are derived from the
 * data dir and the installation's id, so no state is needed and objects of other installations are never included.
 *
 * A foreign process that has a copy of all mounts, or a file open in one, keeps the file system and its loop device
 * alive after we have unmounted it. Such processes are reported as holders.
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Holder, KernelInventory, KernelObject } from "#core/kernel-objects.ts";
import { programFile } from "../choice.ts";
import { program } from "../linux/program.ts";
import { devicePrefix } from "../net/names.ts";
import { cgroupDirs, processesIn } from "../runtime/runc/cgroup.ts";
import { processCgroup } from "../runtime/runc/enclosure.ts";
import { layoutOf } from "../runtime/runc/layout.ts";
import { type BlockDevices, blockDevicesOf } from "./block-devices.ts";
import { allPids, type MountLine, type MountNamespace, mountNamespaces } from "./mount-namespaces.ts";
import { commandOf, usersOf } from "./open-files.ts";

export interface Installation {
  data_dir: string;
  node_id: string;
}

/** Names by which our objects are found. */
interface Names {
  run: string;
  /** Directories below the data dir with mounts or backing files of loop devices. */
  places: string[];
  cgroup: string;
  node_id: string;
}

/** Below the data dir: disks of machines, prepared disks, volumes. Other mounts there are not ours. */
const PLACES = ["machines", "ready", "volumes"];
/** A namespace may have thousands of processes; a few are enough to identify it. */
const NAMED = 5;

function namesOf({ data_dir, node_id }: Installation): Names {
  const { run, cgroup } = layoutOf(data_dir, node_id);
  const data = existsSync(data_dir) ? realpathSync(data_dir) : data_dir;
  return { run, cgroup, node_id, places: PLACES.map((place) => `${join(data, place)}/`) };
}

export interface InventoryOptions {
  /** The process of the platform, if it runs; its holds are legitimate. */
  platform_pid?: number | undefined;
  /** File systems seen before a removal, to find those who still use them. */
  before?: ReadonlySet<string>;
}

/** `devices` are the file systems seen, for `before`. */
export async function kernelInventory(
  installation: Installation,
  { platform_pid, before = new Set() }: InventoryOptions = {},
): Promise<KernelInventory & { devices: Set<string> }> {
  const names = namesOf(installation);
  const unseen: string[] = [];
  const inspect = async <T>(what: string, found: () => Promise<T> | T, otherwise: T): Promise<T> => {
    try {
      return await found();
    } catch (thrown) {
      unseen.push(`${what}: ${messageOf(thrown)}`);
      return otherwise;
    }
  };
  const own = ownProcesses(names);
  const mine = new Set([...own, ...familyOf(platform_pid)]);
  const blocks = await inspect("loop devices", () => blockDevices(names), { loops: [], mapped: [] });
  const { namespaces, hidden } = mountNamespaces();
  if (hidden > 0) unseen.push(`${hidden} processes of other users: run it as root`);
  const mounts = oursIn(namespaces, names, blocks);
  const devices = new Set([...ownFileSystems(mounts, namespaces), ...before]);
  for (const { device } of [...blocks.loops, ...blocks.mapped]) devices.add(device);
  const found: Found[] = [...mountObjects(mounts, mine), ...blockObjects(blocks)];
  if (devices.size > 0) await nameUsers(found, { devices, blocks, mine });
  const objects = [
    ...own.map((pid): KernelObject => ({ kind: "process", name: String(pid), of: commandOf(pid), held_by: [] })),
    ...found.map(({ kind, name, of, held_by }) => ({ kind, name, ...(of ? { of } : {}), held_by })),
    ...networkDevices(names),
    ...(await inspect("nftables tables", () => tables(names), [])),
    ...cgroups(names),
  ];
  return { objects, unseen, devices };
}

/** Processes in a machine's cgroup, or helper programs with a path of this installation. */
function ownProcesses({ run, places, cgroup }: Names): number[] {
  const started = allPids().filter((pid) => pid !== process.pid && isProgram(pid, [`${run}/`, ...places]));
  const boxed = Object.values(cgroupDirs(cgroup)).flatMap((dir) =>
    foldersIn(dir).flatMap((name) => processesIn(processCgroup(`${cgroup}/${name}`))),
  );
  return [...new Set([...started, ...boxed])].sort((a, b) => a - b);
}

/** Programs that the platform leaves running, by their kernel names; the guard of a host is a bash. */
const PROGRAMS = /^(monitor|runc|criu|lxcfs|gocryptfs|bash)/;
const GUARD = "hangar-guard";

/** Other programs may have our paths as arguments: an editor, a copy, a search. */
function isProgram(pid: number, paths: readonly string[]): boolean {
  try {
    const comm = readFileSync(`/proc/${pid}/comm`, "utf8");
    if (!PROGRAMS.test(comm)) return false;
    const cmdline = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return paths.some((path) => cmdline.includes(path)) && (!comm.startsWith("bash") || cmdline.includes(GUARD));
  } catch {
    return false;
  }
}

/** A process and its children. */
function familyOf(pid: number | undefined): number[] {
  if (pid === undefined) return [];
  const parentOf = (one: number): number => {
    try {
      return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${one}/stat`, "utf8"))?.[1]);
    } catch {
      return 0;
    }
  };
  return [pid, ...allPids().filter((one) => parentOf(one) === pid)];
}

const blockDevices = ({ places }: Names): Promise<BlockDevices> =>
  blockDevicesOf((file) => places.some((place) => file.startsWith(place)));

interface OurMount {
  line: MountLine;
  namespace: MountNamespace;
}

function oursIn(namespaces: readonly MountNamespace[], names: Names, { loops, mapped }: BlockDevices): OurMount[] {
  const devices = new Set([...loops, ...mapped].map(({ device }) => device));
  return namespaces.flatMap((namespace) =>
    namespace.mounts.filter((line) => isOurs(line, names, devices)).map((line) => ({ line, namespace })),
  );
}

/** By device, or by mount point, which may have a prefix in a namespace with another root. */
function isOurs({ device, point, source, options }: MountLine, { run, places }: Names, devices: Set<string>): boolean {
  return (
    devices.has(device) ||
    `${point}/`.includes(`${run}/`) ||
    options.includes(`=${run}/`) ||
    places.some((place) => point.startsWith(place) || source.startsWith(place))
  );
}

/** File systems mounted only at our places: a bind mount of the data dir in a machine is not one. */
function ownFileSystems(mounts: readonly OurMount[], namespaces: readonly MountNamespace[]): Set<string> {
  const ours = new Set(mounts.map(({ line }) => line));
  const elsewhere = namespaces.flatMap((namespace) => namespace.mounts.filter((line) => !ours.has(line)));
  const shared = new Set(elsewhere.map(({ device }) => device));
  return new Set(mounts.map(({ line }) => line.device).filter((device) => !shared.has(device)));
}

type Found = KernelObject & { device: string };

/**
 * One object per mount point, with the other namespaces that have it. Copies follow our unmounting, unless they are
 * private.
 */
function mountObjects(mounts: readonly OurMount[], mine: ReadonlySet<number>): Found[] {
  const key = ({ device, point }: MountLine): string => `${device} ${point}`;
  const here = new Set(mounts.filter(({ namespace }) => namespace.is_own).map(({ line }) => key(line)));
  const found = new Map<string, Found>();
  for (const { line, namespace } of mounts) {
    const isForeign = !namespace.is_own && !namespace.pids.some((pid) => mine.has(pid));
    if (!namespace.is_own && !isForeign) continue;
    if (isForeign && !line.is_private && here.has(key(line))) continue;
    const object: Found = found.get(key(line)) ?? {
      kind: "mount",
      name: line.point,
      of: line.type,
      held_by: [],
      device: line.device,
    };
    found.set(key(line), object);
    if (isForeign) object.held_by.push(...namespaceHolders(namespace));
  }
  return [...found.values()];
}

const namespaceHolders = ({ pids }: MountNamespace): Holder[] =>
  pids.slice(0, NAMED).map((pid) => ({ pid, command: commandOf(pid), how: "has it in its own mount namespace" }));

const blockObjects = ({ loops, mapped }: BlockDevices): Found[] => [
  ...mapped.map(({ of, device }): Found => ({ kind: "mapped device", name: `/dev/mapper/${of}`, held_by: [], device })),
  ...loops.map(
    ({ name, of, device }): Found => ({ kind: "loop device", name: `/dev/${name}`, of, held_by: [], device }),
  ),
];

interface UseParts {
  devices: ReadonlySet<string>;
  blocks: BlockDevices;
  mine: ReadonlySet<number>;
}

/** Adds processes with open files. A device without a process is held by a file of a detached overlay. */
async function nameUsers(found: readonly Found[], { devices, blocks, mine }: UseParts): Promise<void> {
  const nodes = new Map<string, string>();
  for (const { name, device } of blocks.loops) nodes.set(`/dev/${name}`, device);
  for (const { name, of, device } of blocks.mapped) nodes.set(`/dev/${name}`, device).set(`/dev/mapper/${of}`, device);
  const { users, detached } = await usersOf(devices, nodes);
  const strangers = (list: readonly Holder[] = []): Holder[] => list.filter(({ pid }) => !mine.has(pid));
  const mounted = Map.groupBy(
    found.filter(({ kind }) => kind === "mount"),
    ({ device }) => device,
  );
  // A loop device under a mapped device, or backing another disk, has a user that is no process.
  const isUsed = (device: string): boolean => users.has(device) || mounted.has(device) || blocks.mapped.length > 0;
  for (const object of found) {
    // Bind-mounted files of the host in a machine belong to the host.
    const here = devices.has(object.device) ? strangers(users.get(object.device)) : [];
    const there = object.kind === "mount" ? [] : (mounted.get(object.device) ?? []).flatMap(({ held_by }) => held_by);
    const maybe = object.kind === "mount" || isUsed(object.device) ? [] : strangers(detached);
    const all = [...object.held_by, ...here, ...there, ...maybe];
    object.held_by = [...new Map(all.map((one) => [one.pid, one])).values()];
  }
}

const networkDevices = ({ node_id }: Names): KernelObject[] =>
  readdirSync("/sys/class/net")
    .filter((name) => name.startsWith(devicePrefix(node_id)))
    .map((name) => ({ kind: "network device", name, held_by: [] }));

async function tables({ node_id }: Names): Promise<KernelObject[]> {
  if (!programFile("nft")) throw new Error("nft is not installed");
  const listed = (await program("nft", ["list", "tables"])).split("\n");
  const isOwn = (line: string): boolean => new RegExp(`^table \\w+ hangar_${node_id}(_|$)`).test(line);
  return listed
    .filter(isOwn)
    .map((line) => ({ kind: "nftables table", name: line.replace("table ", ""), held_by: [] }));
}

const cgroups = ({ cgroup }: Names): KernelObject[] =>
  [...new Set(Object.values(cgroupDirs(cgroup)))]
    .filter((dir) => existsSync(dir))
    .map((dir) => ({ kind: "cgroup", name: dir, held_by: [] }));

function foldersIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}
