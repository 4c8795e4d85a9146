import type { MountedVolume } from "./mounts.ts";
import type { Encryption, Usage } from "./types.ts";

/**
 * What keeps volumes on a host. Implemented in drivers/disk, each implementation passes `disk.suite.ts`.
 *
 * Everything it makes is named by the id it is given, and every call may be repeated, because after a crash
 * the caller does not know whether the first one happened: what is there already is left as it is, what was
 * begun is begun anew. Calls for one volume never overlap; calls for different volumes do.
 */
export interface VolumeDisk {
  readonly name: string;
  /** What this host can do; tried out when it is first asked for. */
  capabilities(): Promise<DiskCapabilities>;
  /** Takes back what is there, and takes away what a crash left. A disk without volumes does nothing yet. */
  start(): Promise<void>;

  /** Empty, with a file system in it. */
  create(volume: DiskVolume): Promise<void>;
  /** The content of `source` as of one moment, mounted or not, as the content of `target`. */
  fork(source: DiskVolume, target: DiskVolume): Promise<void>;
  /** Its content is what `write` writes; what it does not write is zero. */
  fill(volume: DiskVolume, write: (image: ImageWriter) => Promise<void>): Promise<void>;
  /** As large as `size_gb` says. Not now, when a file system in use cannot grow: then when it is mounted next. */
  grow(volume: DiskVolume): Promise<"grown" | "at_next_mount">;
  /** Nothing of it is left. */
  remove(volume_id: string): Promise<void>;

  mount(volume: DiskVolume): Promise<MountedVolume>;
  unmount(volume: DiskVolume): Promise<void>;

  /** Keeps the content of this moment under the point's id; a machine that writes is held for as short as can be. */
  takePoint(volume: DiskVolume, point_id: string): Promise<{ frozen_ms: number }>;
  openPoint(point_id: string): Promise<ImageReader>;
  dropPoint(point_id: string): Promise<void>;

  /** Undefined when it cannot be known without mounting it. */
  usage(volume: DiskVolume): Promise<Usage | undefined>;
  /** Everything that is there: for finding what nobody knows, and for what it takes. */
  inventory(): Promise<Inventory>;
  close(): Promise<void>;
}

export interface DiskCapabilities {
  /** The best way to encrypt here, or why there is none. */
  encryption: Encryption | undefined;
  encryption_reason: string;
  /** Whether copies share their blocks: snapshots and forks take no time and no room. */
  reflink: boolean;
  reflink_reason: string;
}

export interface DiskVolume {
  id: string;
  size_gb: number;
  fstype: string;
  encryption: Encryption | null;
  key: Buffer | null;
}

export interface ImageReader extends AsyncDisposable {
  size: number;
  /** Where there may be something other than zeros, in order. */
  extents: readonly Extent[];
  read(offset: number, length: number): Promise<Buffer>;
}

export interface Extent {
  offset: number;
  length: number;
}

export interface ImageWriter {
  write(offset: number, bytes: Uint8Array): Promise<void>;
}

export interface Inventory {
  /** Bytes on the disk, by id. Blocks that copies share are counted at each of them. */
  volumes: Map<string, number>;
  points: Map<string, number>;
  /** Of the disk underneath. */
  total_bytes: number;
  free_bytes: number;
}

export const GIB = 1024 ** 3;
