/** Files of simulated machines: a folder of each on this box, in which the program works that real machines have. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { nativeProgram } from "../runc/native-programs.ts";

const FOLDERS = ["etc", "root", "tmp"];
const USERS = { "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n" };

export class SimFiles {
  /** Where the folders stay. Without it they are temporary. */
  readonly #kept: string | undefined;
  readonly #temporary = new Map<string, string>();

  constructor(kept: string | undefined) {
    this.#kept = kept;
  }

  /** Starts the program on the machine's folder, in which it resolves every path. */
  start(id: string, words: readonly string[]): ChildProcessByStdio<Writable, Readable, Readable> {
    return spawn(nativeProgram("files"), [this.#root(id), ...words], { stdio: ["pipe", "pipe", "pipe"], env: {} });
  }

  /** The machine is destroyed. */
  remove(id: string): void {
    const root = this.#kept === undefined ? this.#temporary.get(id) : join(this.#kept, id);
    if (root !== undefined) rmSync(root, { recursive: true, force: true });
    this.#temporary.delete(id);
  }

  close(): void {
    for (const id of this.#temporary.keys()) this.remove(id);
  }

  #root(id: string): string {
    const root = this.#kept === undefined ? this.#temporary.get(id) : join(this.#kept, id);
    if (root !== undefined && existsSync(root)) return root;
    const made = root ?? mkdtempSync(join(tmpdir(), "hangar-sim-"));
    for (const folder of FOLDERS) mkdirSync(join(made, folder), { recursive: true });
    for (const [file, text] of Object.entries(USERS)) writeFileSync(join(made, file), text);
    if (root === undefined) this.#temporary.set(id, made);
    return made;
  }
}
