import type { MountedVolume } from "./mounts.ts";
import type { Encryption, Usage } from "./types.ts";

/**
 * Stores volumes on a host. Implemented in drivers/disk, tested by `disk.suite.ts`. Everything is named by the given
 * id, and all calls are idempotent, because after a crash the caller does not know whether the first one succeeded:
 * what exists is kept, what is incomplete starts again. Calls for one volume never overlap; calls for different volumes
 * do.
 */
export interface VolumeDisk {
  readonly name: string;
  /** What this host supports; probed on first use. */
  capabilities(): Promise<DiskCapabilities>;
  /** Adopts existing volumes and removes what a crash left. Does nothing without volumes. */
  start(): Promise<void>;

  /** Creates an empty volume with a file system. */
  create(volume: DiskVolume): Promise<void>;
  /** Copies the current content of `source`, mounted or not, to `target`. */
  fork(source: DiskVolume, target: DiskVolume): Promise<void>;
  /** Fills the volume with what `write` writes, and zeros elsewhere. */
  fill(volume: DiskVolume, write: (image: ImageWriter) => Promise<void>): Promise<void>;
  /** Grows to `size_gb`. A mounted file system that cannot grow online grows at the next mount. */
  grow(volume: DiskVolume): Promise<"grown" | "at_next_mount">;
  /** Removes it completely. */
  remove(volume_id: string): Promise<void>;

  mount(volume: DiskVolume): Promise<MountedVolume>;
  unmount(volume: DiskVolume): Promise<void>;

  /** Keeps a point-in-time copy under the point's id; writes are frozen as briefly as possible. */
  takePoint(volume: DiskVolume, point_id: string): Promise<{ frozen_ms: number }>;
  openPoint(point_id: string): Promise<ImageReader>;
  dropPoint(point_id: string): Promise<void>;

  /** Undefined when it is unknown without mounting. */
  usage(volume: DiskVolume): Promise<Usage | undefined>;
  /** Everything on the disk, to find unknown data and usage. */
  inventory(): Promise<Inventory>;
  close(): Promise<void>;
}

export interface DiskCapabilities {
  /** The best available encryption, or why there is none. */
  encryption: Encryption | undefined;
  encryption_reason: string;
  /** Whether copies share blocks (reflink): snapshots and forks take no time and no space. */
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
  /** Extents that may have data, in order. */
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
  /** Disk usage by id. Shared blocks count for each copy. */
  volumes: Map<string, number>;
  points: Map<string, number>;
  /** Size of the underlying disk. */
  total_bytes: number;
  free_bytes: number;
}

export const GIB = 1024 ** 3;
