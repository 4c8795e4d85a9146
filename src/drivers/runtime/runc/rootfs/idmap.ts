import { once } from "node:events";
import { openSync, writeFileSync } from "node:fs";
import { spawnLean } from "../../../linux/spawn.ts";
import { BLOCK } from "../uid-blocks.ts";

/**
 * Opens a user namespace with the machine's id map, for idmapped mounts. Only a process can create one, so an idle
 * program is started for it; the mounts keep the namespace. The caller closes the descriptor.
 */
export async function openUserNamespace(uid_base: number): Promise<number> {
  const { pid, pipes, ended } = spawnLean("unshare", ["--user", "cat"], { stdio: ["we write", "we read", "nothing"] });
  const [input, output] = pipes;
  try {
    // It echoes its input only once it is inside.
    input?.on("error", () => {}).write(".");
    const inside = output && (await Promise.race([once(output, "data"), once(output, "end")])).length > 0;
    if (!inside) throw new Error("user namespaces cannot be made on this host");
    const map = `0 ${uid_base} ${BLOCK}`;
    writeFileSync(`/proc/${pid}/uid_map`, map);
    writeFileSync(`/proc/${pid}/gid_map`, map);
    return openSync(`/proc/${pid}/ns/user`, "r");
  } finally {
    process.kill(pid, "SIGKILL");
    for (const pipe of pipes) pipe?.destroy();
    void ended();
  }
}
