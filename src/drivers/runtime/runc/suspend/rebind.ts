/** Remounts the files of a new lxcfs in machines whose own no longer respond. */
import { readFile } from "node:fs/promises";
import { program } from "../../../linux/program.ts";
import type { ContainerManager } from "../container-manager.ts";
import { LXCFS_FILES, LXCFS_PROBE, type Lxcfs } from "../lxcfs.ts";
import { nativeProgram } from "../native-programs.ts";
import { knownIds } from "../record.ts";

const REBIND = nativeProgram("rebind");

/** Errors of reading a FUSE file whose daemon has ended. */
const DEAD = ["ENOTCONN", "ECONNABORTED"];

export async function rebindMachines(containers: ContainerManager, { dir }: Pick<Lxcfs, "dir">): Promise<void> {
  const { layout, log } = containers.parts;
  for (const id of knownIds(layout)) {
    const record = containers.read(id);
    if (!record?.lxcfs || !containers.runs(record) || (await answers(record.pid))) continue;
    try {
      await program(REBIND, [dir, String(record.pid), ...LXCFS_FILES]);
      log.info({ machine: id }, "the machine has the files of the new lxcfs");
    } catch (error) {
      // One that has exited needs none.
      if (containers.runs(record))
        log.warn({ error, machine: id }, "the machine could not be given the files of lxcfs");
    }
  }
}

/** Whether the machine's lxcfs files are readable. It cannot change mounts below its /sys. */
async function answers(pid: number): Promise<boolean> {
  return await readFile(`/proc/${pid}/root${LXCFS_PROBE}`).then(
    () => true,
    (error: unknown) => !DEAD.includes((error as NodeJS.ErrnoException).code ?? ""),
  );
}
