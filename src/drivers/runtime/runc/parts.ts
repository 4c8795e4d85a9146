/** Constructs the parts of the driver. */
import type { Cidr } from "#core/cidr.ts";
import type { Clock } from "#core/clock.ts";
import { HostClaims } from "#core/host-claims.ts";
import type { Log } from "#core/log.ts";
import type { KeptLogs } from "#core/log-settings.ts";
import { type IoLimits, NO_IO_LIMITS } from "#core/machine-settings.ts";
import type { ImageSource } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { VolumeMounts } from "#volumes/mounts.ts";
import { programFile } from "../../choice.ts";
import { PrivateNetwork } from "../../net/private-network.ts";
import { pinCpus } from "./cgroup.ts";
import { ContainerManager } from "./container-manager.ts";
import { CpuPlacement } from "./cpu-placement.ts";
import type { Enclosing } from "./enclosure.ts";
import { claimDevices, type Layout, layoutOf, makeLayout, pathsOf } from "./layout.ts";
import { RUNC_LIMITS } from "./limits.ts";
import { Lxcfs } from "./lxcfs.ts";
import { BundleBuilder } from "./rootfs/bundle-builder.ts";
import { RootDisks } from "./rootfs/root-disk.ts";
import { SqliteNodeFiles } from "./sqlite/node-files.ts";
import type { Timings } from "./timings.ts";
import { UidBlocks } from "./uid-blocks.ts";

export interface RuncOptions {
  data_dir: string;
  /** Identifies this installation on the host. */
  node_id: string;
  clock: Clock;
  log: Log;
  images: ImageSource;
  volumes?: VolumeMounts;
  local_api?: LocalApi;
  /** Encrypts the memory of suspended machines: 32 bytes, the same at every start. */
  memory_key: Uint8Array;
  root_disk_bytes?: number;
  /** Path of lxcfs, if not the packaged one. */
  lxcfs?: string;
  /** `freeze` never writes a machine's memory to disk, even with CRIU. */
  suspend?: "auto" | "freeze";
  io_limits?: IoLimits;
  kept_logs?: KeptLogs;
  /** Receives the timings of each start. */
  onTimings?: (id: string, timings: Timings) => void;
  /** Private networks span hosts. */
  routed?: boolean;
  /** The IPv4 block that other hosts have a route to. */
  ipv4_block?: number | undefined;
  /** Closed ranges that machines may reach. */
  egress_allow?: readonly Cidr[];
  /** Set for a host with a lease. */
  enclosing?: Enclosing | undefined;
}

/** Debian's path, also used in errors. Docker's packages use another. */
const RUNC = "/usr/sbin/runc";

export interface Parts {
  layout: Layout;
  containers: ContainerManager;
  disks: RootDisks;
  lxcfs: Lxcfs;
}

export function openParts(options: RuncOptions): Parts {
  const { clock, log, images, volumes, local_api, onTimings, memory_key, enclosing } = options;
  const layout = layoutOf(options.data_dir, options.node_id);
  claimDevices(layout);
  makeLayout(layout);
  const network = new PrivateNetwork(options.node_id, {
    routed: options.routed ?? false,
    egress_allow: options.egress_allow ?? [],
  });
  const disks = new RootDisks(layout.ready, options.root_disk_bytes ?? RUNC_LIMITS.root_disk_bytes, clock);
  const ports = { enclosing, ...(volumes ? { volumes } : {}), ...(local_api ? { local_api } : {}) };
  const cpus = new CpuPlacement((id, list) => pinCpus(pathsOf(layout, id).cgroup, list));
  const lxcfs = new Lxcfs({ layout, clock, log, program: options.lxcfs });
  const bundles = new BundleBuilder({
    layout,
    disks,
    network,
    cpus,
    lxcfs,
    clock,
    io_limits: options.io_limits ?? NO_IO_LIMITS,
    sqlite_files: new SqliteNodeFiles(layout.sqlite_node),
    ...ports,
  });
  const notifications = {
    ...(onTimings ? { onTimings } : {}),
    ...(options.ipv4_block === undefined ? {} : { ipv4_block: options.ipv4_block }),
  };
  // The monitor needs the absolute path.
  const runc = programFile("runc") ?? RUNC;
  const containers = new ContainerManager({
    layout,
    runc,
    clock,
    log,
    images,
    network,
    bundles,
    lxcfs,
    memory_key,
    uids: new UidBlocks(new HostClaims("uids", layout.data)),
    ...ports,
    ...notifications,
  });
  return { layout, containers, disks, lxcfs };
}
