/** Port through which a driver mounts a machine's volume. The volumes module implements it with `drivers/disk`. */
export interface VolumeMounts {
  /** The volume's file system, mounted on this host (`nosuid`, `nodev`). Repeating it answers the same. */
  mount(volume_id: string): Promise<MountedVolume>;
  /** Taken away again; nothing happens when it is not mounted. Refused while files in it are open. */
  unmount(volume_id: string): Promise<void>;
}

export interface MountedVolume {
  /** The folder to bind into the machine. Owners in it are as the machine sees them, so it is bound idmapped. */
  dir: string;
  /** The block device, for its statistics; absent where there is none. */
  device?: string;
}
