/** Settings that bound every machine of this process. */
import { type Given, SettingsError, wholeNumber } from "./setting-values.ts";

const each = (what: string): string => `${what} per machine and disk; 0: no limit.`;
const operations = (what: string): string => each(what).replace("0: no limit", "2 or more, 0: no limit");

export const MACHINE_SETTINGS = {
  machine_io_read_mb_per_second: { default: "0", words: each("MiB per second of reads") },
  machine_io_write_mb_per_second: { default: "0", words: each("MiB per second of writes") },
  machine_io_read_iops: { default: "0", words: operations("Read operations per second") },
  machine_io_write_iops: { default: "0", words: operations("Write operations per second") },
} as const satisfies Record<string, { default: string; words: string }>;

/** I/O limits per disk and second; 0 means no limit. */
export interface IoLimits {
  read_bytes: number;
  write_bytes: number;
  read_operations: number;
  write_operations: number;
}

export const NO_IO_LIMITS: IoLimits = { read_bytes: 0, write_bytes: 0, read_operations: 0, write_operations: 0 };

const MIB = 1024 * 1024;

export function machineIo(given: (name: keyof typeof MACHINE_SETTINGS) => Given): IoLimits {
  const number = (name: keyof typeof MACHINE_SETTINGS): number => wholeNumber(given(name), name);
  // The kernel's io.max does not accept one operation per second.
  const iops = (name: keyof typeof MACHINE_SETTINGS): number => {
    if (number(name) === 1) throw new SettingsError(`${given(name).from}: ${name} is 2 or more, or 0 for no limit`);
    return number(name);
  };
  return {
    read_bytes: number("machine_io_read_mb_per_second") * MIB,
    write_bytes: number("machine_io_write_mb_per_second") * MIB,
    read_operations: iops("machine_io_read_iops"),
    write_operations: iops("machine_io_write_iops"),
  };
}

export const NO_LIMIT = "no limit";

/** For display: `read 20 MiB/s, 500 IOPS; write no limit`. */
export function ioText({ read_bytes, write_bytes, read_operations, write_operations }: IoLimits): string {
  const one = (bytes: number, operations: number): string =>
    [...(bytes > 0 ? [`${bytes / MIB} MiB/s`] : []), ...(operations > 0 ? [`${operations} IOPS`] : [])].join(", ") ||
    NO_LIMIT;
  const [read, write] = [one(read_bytes, read_operations), one(write_bytes, write_operations)];
  return read === write ? read : `read ${read}; write ${write}`;
}
