/**
 * The names of the built-in series, as the specification lists them. A group's series are named `<prefix><field>`;
 * code that reads a machine must set every field, so a missing one does not compile.
 */

export const MEMORY_FIELDS = [
  "mem_total",
  "mem_free",
  "mem_available",
  "buffers",
  "cached",
  "swap_cached",
  "active",
  "inactive",
  "swap_total",
  "swap_free",
  "dirty",
  "writeback",
  "slab",
  "shmem",
  "vmalloc_total",
  "vmalloc_used",
  "vmalloc_chunk",
] as const;

export const CPU_MODES = [
  "user",
  "nice",
  "system",
  "idle",
  "iowait",
  "irq",
  "softirq",
  "steal",
  "guest",
  "guest_nice",
] as const;

/** In the order of /proc/diskstats and /sys/block/…/stat. */
export const DISK_FIELDS = [
  "reads_completed",
  "reads_merged",
  "sectors_read",
  "time_reading",
  "writes_completed",
  "writes_merged",
  "sectors_written",
  "time_writing",
  "io_in_progress",
  "time_io",
  "time_io_weighted",
] as const;

/** In the order of /proc/net/dev. */
export const NET_FIELDS = [
  "recv_bytes",
  "recv_packets",
  "recv_errs",
  "recv_drop",
  "recv_fifo",
  "recv_frame",
  "recv_compressed",
  "recv_multicast",
  "sent_bytes",
  "sent_packets",
  "sent_errs",
  "sent_drop",
  "sent_fifo",
  "sent_colls",
  "sent_carrier",
  "sent_compressed",
] as const;

export const FILESYSTEM_FIELDS = ["blocks", "block_size", "blocks_free", "blocks_avail"] as const;

/** Resources with pressure stall information. */
export const PRESSURES = ["cpu", "memory", "io"] as const;

/** Device names of the root disk and the volume inside a machine. */
export const ROOT_DEVICE = "vdb";
export const VOLUME_DEVICE = "vdc";

type Group<Fields extends readonly string[]> = Record<Fields[number], number>;

export type MemoryReadings = Group<typeof MEMORY_FIELDS>;
export type CpuReadings = Group<typeof CPU_MODES>;
export type DiskReadings = Group<typeof DISK_FIELDS>;
export type NetReadings = Group<typeof NET_FIELDS>;
export type FilesystemReadings = Group<typeof FILESYSTEM_FIELDS>;

/** Readings of a running machine. Counters start at its boot. */
export interface Readings {
  /** Bytes. */
  memory: MemoryReadings;
  /** Over 1, 5 and 15 minutes. */
  load: readonly [number, number, number];
  /** By processor, centiseconds. */
  cpus: readonly CpuReadings[];
  /** Guaranteed CPUs. */
  cpu_baseline: number;
  /** CPU credit, in centiseconds. */
  cpu_balance: number;
  /** Throttled centiseconds. */
  cpu_throttle: number;
  /** Pressure stall centiseconds (some, full); absent where the kernel does not count them. */
  pressure?: Readonly<Partial<Record<(typeof PRESSURES)[number], Readonly<Record<string, number>>>>>;
  /** OOM kills. */
  oom_kills?: number;
  disks: Readonly<Record<string, DiskReadings>>;
  nets: Readonly<Record<string, NetReadings>>;
  files_allocated: number;
  files_maximum: number;
  /** By mount point. */
  filesystems: Readonly<Record<string, FilesystemReadings>>;
}

/** A group of readings with every field taken from `of`. */
export function fieldsOf<const Fields extends readonly string[]>(
  fields: Fields,
  of: (field: Fields[number], index: number) => number,
): Group<Fields> {
  return Object.fromEntries(fields.map((field, index) => [field, of(field, index)])) as Group<Fields>;
}
