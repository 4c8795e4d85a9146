/**
 * The host's limit of open files (`fs.file-max`). An open file is charged to the memory of the machine that has it, at
 * least 256 bytes each, so its memory limit bounds them; but without systemd the kernel's default fits a tenth of the
 * memory, and a few small machines can exhaust it for every user but root. So it is raised to more than the memory can
 * hold, as systemd does. It is never lowered or restored: other programs may need it by then.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";

const FILE_MAX = "/proc/sys/fs/file-max";
const FILE_BYTES = 256;
/** The largest that the kernel takes. */
const NO_BOUND = "9223372036854775807";

/** Returns the problem when the host does not permit it. */
export function openFileTable(file = FILE_MAX): string | undefined {
  const wanted = totalmem() / FILE_BYTES;
  try {
    if (Number(readFileSync(file, "utf8")) < wanted) writeFileSync(file, NO_BOUND);
  } catch {
    // Reported below, with the current value.
  }
  const most = tableSize(file);
  if (most === undefined || most >= wanted) return undefined;
  return `the host's table of open files ends at ${most} (fs.file-max), and machines can fill it: sysctl -w fs.file-max=${NO_BOUND}`;
}

function tableSize(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
