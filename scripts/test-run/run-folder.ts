/**
 * The folder that all tests of a run make theirs in, and what the tests started: both can be cleared away when a run is
 * broken off and no test gets to do it itself.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { DATA_LINK } from "#drivers/runtime/runc/layout.ts";

/** Of the caller's own settings tests take nothing: somebody may run a platform with them. */
const TAKEN = new Set([
  "HANGAR_BOX",
  "HANGAR_BOX_ACCEL",
  "HANGAR_BOX_NICE",
  "HANGAR_BOX_PORT",
  "HANGAR_CONFORMANCE",
  "HANGAR_MUTATE",
]);
/** Marks every process that a run started, however far it has gone from its parent. */
const MARK = "HANGAR_TEST_RUN";
const RUN = "/run/hangar";

export class RunFolder {
  readonly path: string;

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "ht-"));
    // Servers that tests start as other users find their own folders in it.
    chmodSync(this.path, 0o711);
  }

  /** What tests find in their environment. */
  environment(): NodeJS.ProcessEnv {
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("HANGAR_") || TAKEN.has(name));
    return { ...Object.fromEntries(own), TMPDIR: this.path, [MARK]: this.path };
  }

  /** Ends every process of the run, and takes away machines, mounts and files. */
  async clear(): Promise<void> {
    for (const pid of this.#processes()) signal(pid, "SIGKILL");
    for (const { data_dir, node_id } of this.#installations())
      await takeDown({ data_dir, node_id, clock: systemClock, log: silentLog }).catch(() => {});
    for (const mount of this.#mounts().reverse()) spawnSync("umount", ["--lazy", mount]);
    this.remove();
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 3 });
  }

  #processes(): number[] {
    if (process.platform !== "linux") return [];
    const own = (pid: string): boolean => read(`/proc/${pid}/environ`).split("\0").includes(`${MARK}=${this.path}`);
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && own(name))
      .map(Number);
  }

  /** Runtimes of machines that keep their data in this folder. */
  #installations(): { data_dir: string; node_id: string }[] {
    const all = existsSync(RUN) ? readdirSync(RUN) : [];
    return all.flatMap((node_id) => {
      const data_dir = target(join(RUN, node_id, DATA_LINK));
      return data_dir.startsWith(`${this.path}/`) ? [{ data_dir, node_id }] : [];
    });
  }

  #mounts(): string[] {
    const points = read("/proc/self/mountinfo").split("\n");
    return points.map((line) => line.split(" ")[4] ?? "").filter((at) => at.startsWith(`${this.path}/`));
  }
}

function target(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
