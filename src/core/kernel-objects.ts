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
  /** How it holds it, such as "has a file open". */
  how: string;
}

export interface KernelObject {
  kind: KernelObjectKind;
  /** As the kernel names it: a path, a device, a pid. */
  name: string;
  /** What it belongs to, when the name does not say. */
  of?: string;
  /** Processes without which it would be gone. */
  held_by: Holder[];
}

export interface KernelInventory {
  objects: KernelObject[];
  /** What could not be looked at, with the reason. */
  unseen: string[];
}

/** What `main.ts down` prints. */
export interface DownReport extends KernelInventory {
  machines: number;
  volumes: number;
  data_dir: string;
  /** What could not be ended, in words. */
  problems: string[];
}
