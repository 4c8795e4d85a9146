import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { spawnLean } from "../../linux/spawn.ts";
import { BLOCK } from "./uid-blocks.ts";

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

/**
 * Namespaces made ahead, so that a start does not wait for one. They are few: what is not taken costs a descriptor.
 */
export class UserNamespaces {
  readonly #ready = new Map<number, Promise<number>>();

  /** Begins to make one; `take` finds it. */
  prepare(uid_base: number): void {
    if (this.#ready.has(uid_base)) return;
    const made = openUserNamespace(uid_base);
    made.catch(() => {});
    this.#ready.set(uid_base, made);
  }

  async take(uid_base: number): Promise<number> {
    const ready = this.#ready.get(uid_base);
    this.#ready.delete(uid_base);
    return await (ready ?? openUserNamespace(uid_base));
  }

  async close(): Promise<void> {
    const all = [...this.#ready.values()];
    this.#ready.clear();
    for (const fd of await Promise.allSettled(all)) if (fd.status === "fulfilled") closeSync(fd.value);
  }
}
