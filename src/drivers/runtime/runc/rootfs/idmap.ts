import { once } from "node:events";
import { openSync, writeFileSync } from "node:fs";
import { spawnLean } from "../../../linux/spawn.ts";
import { BLOCK } from "../uid-blocks.ts";

/**
 * A user namespace with the machine's ids, through which mounts show their owners. Only a process can make one, so
 * a program is started for it that does nothing; the namespace lives on in the mounts. The caller closes the answer.
 */
export async function openUserNamespace(uid_base: number): Promise<number> {
  const { pid, pipes, ended } = spawnLean("unshare", ["--user", "cat"], { stdio: ["we write", "we read", "nothing"] });
  const [input, output] = pipes;
  try {
    // It repeats what it hears only once it is inside.
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
