/** Port through which a driver mounts a machine's volume. The volumes module implements it with `drivers/disk`. */
export interface VolumeMounts {
  /** Mounts the volume's file system on this host (`nosuid`, `nodev`). Idempotent. */
  mount(volume_id: string): Promise<MountedVolume>;
  /** Unmounts it, if mounted. Refused while files are open. */
  unmount(volume_id: string): Promise<void>;
}

export interface MountedVolume {
  /** The directory to bind into the machine. Owners in it are the machine's ids, so it is bound idmapped. */
  dir: string;
  /** The block device, for its statistics; absent where there is none. */
  device?: string;
}
