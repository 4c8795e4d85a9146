/** Types of the kernel objects of one installation, as `hangar down --all` and `hangar doctor` report them. */

export type KernelObjectKind =
  | "process"
  | "mount"
  | "loop device"
  | "mapped device"
  | "network device"
  | "nftables table"
  | "cgroup";

export interface Holder {
  pid: number;
  command: string;
  /** For example "has a file open". */
  how: string;
}

export interface KernelObject {
  kind: KernelObjectKind;
  /** The kernel's name: a path, a device, a pid. */
  name: string;
  /** The owner, when the name does not contain it. */
  of?: string;
  /** Processes that keep it alive. */
  held_by: Holder[];
}

export interface KernelInventory {
  objects: KernelObject[];
  /** What could not be inspected, with the reason. */
  unseen: string[];
}

/** What `main.ts down` prints. */
export interface DownReport extends KernelInventory {
  machines: number;
  volumes: number;
  data_dir: string;
  /** What could not be removed, for display. */
  problems: string[];
}
