import { deviceAt } from "../../linux/loop.ts";
import { cgroupDirs } from "./cgroup.ts";
import { layoutOf, pathsOf } from "./layout.ts";
import { isAlive } from "./process-table.ts";
import { readRecord } from "./record.ts";

/** Where the kernel counts what a machine uses. */
export interface MachineFacts {
  /** Process 1 of the machine, as this host numbers it: `/proc/<pid>/net/dev` is the machine's network. */
  pid: number;
  /** Folders of its cgroup by controller: `memory`, `cpuacct`, `cpu`, `blkio`, … with version 1, `unified` with version 2. */
  cgroups: Record<string, string>;
  /** The device under its root file system, such as `/dev/loop7`; `/sys/block/loop7/stat` counts its work. */
  root_device?: string;
  /** Where that file system is mounted on this host, for `statfs`. */
  root_mount: string;
  volume?: { id: string; device?: string; mount: string };
  /** This host's end of its network cable: what it received is what the machine sent. */
  veth: string;
  private_ip: string;
}

/** Undefined when the machine does not run. Reads files only, so it may be asked often and from any process. */
export function machineFacts(of: { data_dir: string; node_id: string }, id: string): MachineFacts | undefined {
  const layout = layoutOf(of.data_dir, of.node_id);
  const record = readRecord(layout, id);
  if (record?.state !== "running" || record.pid === undefined || !isAlive(record.pid, record.pid_start))
    return undefined;
  const paths = pathsOf(layout, id);
  const device = deviceAt(paths.upper);
  return {
    pid: record.pid,
    cgroups: cgroupDirs(paths.cgroup),
    ...(device ? { root_device: device } : {}),
    root_mount: paths.upper,
    ...(record.volume ? { volume: { ...record.volume, mount: paths.volume } } : {}),
    veth: paths.veth,
    private_ip: record.private_ip,
  };
}
