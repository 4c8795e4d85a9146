/** Files of simulated machines: a folder of each on this box, in which the program works that real machines have. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { nativeProgram } from "../runc/native-programs.ts";

const FOLDERS = ["etc", "root", "tmp"];
const USERS = { "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n" };

export class SimFiles {
  readonly #roots = new Map<string, string>();

  /** Starts the program on the machine's folder, in which it resolves every path. */
  start(id: string, words: readonly string[]): ChildProcessByStdio<Writable, Readable, Readable> {
    const root = this.#roots.get(id) ?? makeRoot();
    this.#roots.set(id, root);
    return spawn(nativeProgram("files"), [root, ...words], { stdio: ["pipe", "pipe", "pipe"], env: {} });
  }

  remove(id: string): void {
    const root = this.#roots.get(id);
    if (root !== undefined) rmSync(root, { recursive: true, force: true });
    this.#roots.delete(id);
  }

  close(): void {
    for (const id of this.#roots.keys()) this.remove(id);
  }
}

function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), "hangar-sim-"));
  for (const folder of FOLDERS) mkdirSync(join(root, folder));
  for (const [file, text] of Object.entries(USERS)) writeFileSync(join(root, file), text);
  return root;
}
