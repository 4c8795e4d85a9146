/** Builds and removes a machine's bundle: its disk, root file system, files and OCI config. */
import {
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { IoLimits } from "#core/machine-settings.ts";
import { NODE_FOLDER } from "#core/sqlite-node.ts";
import { sizeOf } from "#machines/config/config.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { HeldImage } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import { GIB } from "#volumes/disk.ts";
import type { VolumeMounts } from "#volumes/mounts.ts";
import { bind, CallError, detach, MS, mount, mountWith, syncFileSystem } from "../../../linux/calls.ts";
import { GuestTree } from "../../../linux/guest-tree.ts";
import { program } from "../../../linux/program.ts";
import type { PrivateNetwork } from "../../../net/private-network.ts";
import { bootFile } from "../boot-file.ts";
import { canPinCpus, pinnedCpus } from "../cgroup.ts";
import { limitIo } from "../cgroup-io.ts";
import { allowedCpus, type CpuPlacement } from "../cpu-placement.ts";
import { delegate } from "../delegation.ts";
import { type Enclosing, enclose } from "../enclosure.ts";
import { type Layout, type MachinePaths, pathsOf } from "../layout.ts";
import type { Lxcfs } from "../lxcfs.ts";
import { nativeProgram } from "../native-programs.ts";
import { ociConfig } from "../oci-config.ts";
import { processesOf } from "../processes.ts";
import { ipv4Of, knownIds, type MachineRecord, readRecord } from "../record.ts";
import type { SqliteNodeFiles } from "../sqlite/node-files.ts";
import { noteDisks } from "../stats/disk-stats.ts";
import type { Stopwatch } from "../timings.ts";
import { BLOCK } from "../uid-blocks.ts";
import { openUserNamespace } from "./idmap.ts";
import { dropCopies, moveOwners, showLayer } from "./idmap-copy.ts";
import { populateRootfs } from "./populate-rootfs.ts";
import { preflight } from "./preflight.ts";
import type { RootDisks } from "./root-disk.ts";

export interface BundleBuilderParts {
  layout: Layout;
  disks: RootDisks;
  network: PrivateNetwork;
  cpus: CpuPlacement;
  lxcfs: Lxcfs;
  clock: Clock;
  io_limits: IoLimits;
  volumes?: VolumeMounts;
  local_api?: LocalApi;
  enclosing?: Enclosing | undefined;
  sqlite_files: SqliteNodeFiles;
}

const INIT = nativeProgram("init");
/** mount(2) accepts one page of options. */
const OPTIONS_BYTES = 4000;

export class BundleBuilder {
  readonly #parts: BundleBuilderParts;

  constructor(parts: BundleBuilderParts) {
    this.#parts = parts;
  }

  /** Prepares everything for runc or CRIU; existing parts are reused. */
  async build(launch: Launch, record: MachineRecord, image: HeldImage, watch: Stopwatch): Promise<MachineRecord> {
    const { layout, network, lxcfs, clock } = this.#parts;
    await delegate(layout.node_id, clock);
    const enclosed = this.#enclose(launch.id, true);
    const paths = pathsOf(layout, launch.id);
    this.#folders(paths);
    const bridge = network.open(paths.veth, launch.private_ip);
    bridge.catch(() => {});
    const volume = await this.#root(launch, record, paths, watch);
    const processes = this.#fill(launch, record, image, paths);
    const node = launch.config.sqlite ? { sqlite_node: await this.#nodeFiles() } : {};
    await this.#svc({ ...record, ...node }, paths, bootFile(processes));
    watch.lap("files");
    const with_lxcfs = await lxcfs.ready();
    const [first] = processes;
    const started = { program: basename(first?.argv[0] ?? ""), folder: first?.folder ?? "/" };
    const kernel = { own_cgroup: true, lxcfs: with_lxcfs, enclosed };
    const staged = { ...record, ...started, ...kernel, ...node, ...(volume ? { volume } : {}) };
    this.#bundle(launch, staged, paths, with_lxcfs ? lxcfs.dir : undefined);
    noteDisks(staged, paths);
    await bridge;
    watch.lap("network");
    return staged;
  }

  /** For a resume: restores the mounts, without writing into them. */
  async rebuild(launch: Launch, record: MachineRecord, watch: Stopwatch): Promise<MachineRecord["volume"]> {
    const { layout, network, clock } = this.#parts;
    await delegate(layout.node_id, clock);
    if (record.enclosed) this.#enclose(launch.id, false);
    const paths = pathsOf(layout, launch.id);
    this.#folders(paths);
    const volume = await this.#root(launch, record, paths, watch);
    await this.#svc(record, paths, undefined);
    this.#bundle(launch, record, paths, record.lxcfs ? await this.#lxcfsFiles() : undefined);
    noteDisks({ ...record, ...(volume ? { volume } : {}) }, paths);
    await network.open(paths.veth, launch.private_ip);
    watch.lap("network");
    return volume;
  }

  /** A new boot is fenced until its exemption is stored again. */
  #enclose(id: string, anew: boolean): boolean {
    const { layout, enclosing } = this.#parts;
    if (!enclosing) return false;
    const { fence_cgroup, unfenced } = pathsOf(layout, id);
    if (anew) rmSync(unfenced, { force: true });
    return enclose(fence_cgroup);
  }

  /** Adopts a machine that was running before us. */
  adopt(record: MachineRecord): void {
    const { id, pid = 0 } = record;
    const { cgroup } = pathsOf(this.#parts.layout, id);
    this.#parts.cpus.running(id, canPinCpus() ? pinnedCpus(cgroup) : allowedCpus(pid));
    this.limitIo(record);
  }

  /** Its cgroup and mounts exist. */
  limitIo(record: MachineRecord): void {
    limitIo(pathsOf(this.#parts.layout, record.id), record, this.#parts.io_limits);
  }

  /** For hosts that cannot pin cgroups: the CPU affinity that the machine's processes inherit. */
  affinity(id: string): { affinity?: readonly number[] } {
    const cpus = this.#parts.cpus.cpusOf(id);
    return cpus && !canPinCpus() ? { affinity: cpus } : {};
  }

  resumed(record: MachineRecord): void {
    this.#parts.cpus.running(record.id);
    this.limitIo(record);
  }

  #folders(paths: MachinePaths): void {
    for (const dir of [paths.run, paths.bundle, paths.rootfs, paths.upper, paths.lower, paths.volume, paths.svc]) {
      mkdirSync(dir, { recursive: true, mode: 0o711 });
    }
    mkdirSync(paths.dir, { recursive: true, mode: 0o700 });
  }

  async #root(
    launch: Launch,
    record: MachineRecord,
    paths: MachinePaths,
    watch: Stopwatch,
  ): Promise<MachineRecord["volume"]> {
    const mounted = mountsUnder(paths.run);
    // In parallel with the disk, so that a start does not wait for both.
    const namespace = openUserNamespace(record.uid_base);
    namespace.catch(() => {});
    try {
      if (!mounted.has(paths.upper)) {
        const { size_gb = 0 } = launch.config.rootfs ?? {};
        await this.#parts.disks.mount(paths.disk, paths.upper, size_gb * GIB);
      }
      watch.lap("disk");
      const [wanted] = launch.config.mounts ?? [];
      const volume = wanted?.volume === undefined ? undefined : { id: wanted.volume };
      const userns = await namespace;
      watch.lap("user namespace");
      if (!mounted.has(paths.rootfs)) await this.#overlay(record, paths, userns);
      if (!volume) return undefined;
      const { dir, device } = await this.#volumes().mount(volume.id);
      if (!mounted.has(paths.volume)) bind(dir, paths.volume, { userns, unlocked: launch.sandbox === "build" });
      return { ...volume, ...(device ? { device } : {}) };
    } finally {
      const fd = await namespace.catch(() => undefined);
      if (fd !== undefined) closeSync(fd);
      watch.lap("mount");
    }
  }

  #volumes(): VolumeMounts {
    const { volumes } = this.#parts;
    if (!volumes) throw new Error("this platform has no volumes");
    return volumes;
  }

  async #overlay({ uid_base, layers }: MachineRecord, paths: MachinePaths, userns: number): Promise<void> {
    const [upper, work] = ["u", "w"].map((name) => join(paths.upper, name)) as [string, string];
    for (const dir of [upper, work]) {
      // Not `recursive`, which reports ENOENT for a read-only disk.
      if (!existsSync(dir)) mkdirSync(dir, { mode: 0o755 });
      else if (dir === upper && statSync(dir).uid !== uid_base) await moveOwners(dir, uid_base);
      chownSync(dir, uid_base, uid_base);
    }
    dropCopies(paths.copies, layers, uid_base);
    const lowers: string[] = [];
    for (const [index, layer] of layers.entries()) {
      const at = join(paths.lower, String(index));
      mkdirSync(at, { recursive: true });
      await showLayer(layer, at, { userns, uid_base, copies: paths.copies });
      lowers.push(at);
    }
    try {
      // overlayfs lists the topmost layer first.
      mountOverlay(lowers.toReversed(), upper, work, paths.rootfs);
    } finally {
      // The overlay has its own references.
      for (const lower of lowers) detach(lower);
    }
  }

  /** Inspects the image, then adds files of the platform and the config. */
  #fill(launch: Launch, record: MachineRecord, image: HeldImage, paths: MachinePaths) {
    using tree = new GuestTree(paths.rootfs);
    const processes = processesOf(launch, image, tree);
    const [wanted] = launch.config.mounts ?? [];
    preflight(
      tree,
      processes.map(({ folder }) => folder),
      wanted?.volume === undefined ? undefined : wanted.path,
    );
    populateRootfs(
      tree,
      launch,
      record.uid_base,
      processes.map(({ folder }) => folder),
    );
    return processes;
  }

  /** Fills `/.svc`: process 1, its boot file, the socket of the machine API, and the files of a SQLite node. */
  async #svc(record: MachineRecord, paths: MachinePaths, boot: Buffer | undefined): Promise<void> {
    const { id, uid_base, sqlite_node } = record;
    const dir = await this.#svcDir(id, paths);
    const [init, file] = [join(dir, "init"), join(dir, "boot")];
    if (boot) {
      // Of this version, as the file that it reads.
      for (const old of [init, file]) rmSync(old, { force: true });
      // Readable by the machine's root only, because it contains every secret. Removed once the machine runs.
      writeFileSync(file, boot, { mode: 0o400 });
      chownSync(file, uid_base, uid_base);
    }
    if (!existsSync(init)) copyFileSync(INIT, init);
    const mounted = mountsUnder(paths.run);
    if (!mounted.has(paths.svc)) bind(dir, paths.svc, {});
    if (sqlite_node === undefined) return;
    for (const at of [join(dir, basename(NODE_FOLDER)), paths.sqlite_node])
      mkdirSync(at, { recursive: true, mode: 0o755 });
    if (!mounted.has(paths.sqlite_node)) bind(this.#parts.sqlite_files.path(sqlite_node), paths.sqlite_node, {});
  }

  /** The version of this platform. Those of other machines stay. */
  async #nodeFiles(): Promise<string> {
    const { layout, sqlite_files } = this.#parts;
    return await sqlite_files.current(() =>
      knownIds(layout).flatMap((id) => readRecord(layout, id)?.sqlite_node ?? []),
    );
  }

  async #svcDir(id: string, paths: MachinePaths): Promise<string> {
    const { local_api } = this.#parts;
    if (local_api) return await local_api.open(id);
    const dir = join(paths.dir, "svc");
    mkdirSync(dir, { recursive: true, mode: 0o755 });
    return dir;
  }

  /** The machine runs: the boot file is removed. */
  async started(id: string): Promise<void> {
    this.#parts.cpus.running(id);
    const dir = await this.#svcDir(id, pathsOf(this.#parts.layout, id));
    rmSync(join(dir, "boot"), { force: true });
  }

  /** A snapshot with these files needs them: without lxcfs those of the host's /proc, at the same paths. */
  async #lxcfsFiles(): Promise<string> {
    const { lxcfs } = this.#parts;
    return (await lxcfs.ready()) ? lxcfs.dir : "";
  }

  #bundle(launch: Launch, record: MachineRecord, paths: MachinePaths, lxcfs: string | undefined): void {
    const { uid_base, id, own_cgroup = false } = record;
    const { network, cpus: placement } = this.#parts;
    const { config, private_ip } = launch;
    const { cpus, memory_mb, cpu_kind } = sizeOf(config);
    const [wanted] = config.mounts ?? [];
    const cpuset = placement.place(id, cpus);
    const oci = ociConfig({
      paths,
      hostname: config.dns?.hostname || id,
      uid_base,
      tty: config.init?.tty ?? false,
      memory_mb,
      swap_mb: config.init?.swap_size_mb ?? 0,
      cpus,
      shared_cpu: cpu_kind === "shared",
      own_cgroup,
      lxcfs,
      sandbox: launch.sandbox,
      sqlite_node: record.sqlite_node !== undefined,
      cpuset: canPinCpus() ? cpuset : undefined,
      ...(wanted?.volume === undefined ? {} : { volume: { path: wanted.path } }),
      hook: network.hook({
        veth: paths.veth,
        private_ip,
        ipv4: ipv4Of(record),
        uid_base,
        uid_count: BLOCK,
      }),
    });
    writeFileSync(join(paths.bundle, "config.json"), JSON.stringify(oci), { mode: 0o600 });
  }

  /**
   * Syncs the machine's disks. Unmounting syncs only the last mount, and a starting machine briefly has copies of all
   * mounts of this host.
   */
  async flush(id: string): Promise<void> {
    const { run, upper, volume } = pathsOf(this.#parts.layout, id);
    const mounted = mountsUnder(run);
    await Promise.all([upper, volume].filter((at) => mounted.has(at)).map((at) => syncFileSystem(at)));
  }

  /** Removes every mount, innermost first, and releases the volume. */
  async remove(id: string, volume: MachineRecord["volume"]): Promise<void> {
    this.#parts.cpus.release(id);
    const paths = pathsOf(this.#parts.layout, id);
    const mounts = [...mountsUnder(paths.run)].reverse();
    // In one call: unmounting writes back dirty data and may take long.
    if (mounts.length > 0) {
      await program("umount", mounts).catch(async () => {
        for (const at of mountsUnder(paths.run)) await program("umount", ["--lazy", at]).catch(() => {});
      });
    }
    if (volume) await this.#parts.volumes?.unmount(volume.id);
  }
}

/** `nfs_export` enables file handles, which CRIU needs for machines that use inotify. */
function mountOverlay(lowers: readonly string[], upper: string, work: string, target: string): void {
  try {
    overlay(lowers, upper, work, target, ["index=on", "nfs_export=on"]);
  } catch (thrown) {
    // ESTALE: the layers were unpacked again since this upper was created. EINVAL: not supported by this host.
    if (!(thrown instanceof CallError) || !["ESTALE", "EINVAL"].includes(thrown.code)) throw thrown;
    overlay(lowers, upper, work, target, []);
  }
}

function overlay(
  lowers: readonly string[],
  upper: string,
  work: string,
  target: string,
  more: readonly string[],
): void {
  const options = [`lowerdir=${lowers.join(":")}`, `upperdir=${upper}`, `workdir=${work}`, ...more].join(",");
  if (options.length <= OPTIONS_BYTES) {
    mount("overlay", target, "overlay", MS.NOSUID | MS.NODEV, options);
    return;
  }
  const pairs = more.map((option) => option.split("=") as [string, string]);
  const each = lowers.map((lower): [string, string] => ["lowerdir+", lower]);
  mountWith("overlay", target, [...each, ["upperdir", upper], ["workdir", work], ...pairs], MS.NOSUID | MS.NODEV);
}

/** Mount points below a directory, in mount order. */
export function mountsUnder(dir: string): Set<string> {
  const found = new Set<string>();
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
    const at = line.split(" ")[4];
    if (at?.startsWith(`${dir}/`)) found.add(at);
  }
  return found;
}
