import { type FSWatcher, readFileSync, rmSync, statSync, watch } from "node:fs";
import type { Clock } from "#core/clock.ts";
import type { Exit } from "#machines/runtime/driver.ts";
import { type Layout, pathsOf } from "./layout.ts";
import { oomOf } from "./stats/oom.ts";

/** Poll interval while someone waits, in case a file notification was lost. */
const POLL_MS = 100;

interface ExitFile {
  code: number;
  at: number;
}

/** The exit of a boot. Process 1 reports a signal as a shell does: 128 plus its number. */
export function exitOf(
  exit_file: ExitFile | undefined,
  of: { cgroup: string; program?: string | undefined },
  now: number,
): Exit {
  const { code, at } = exit_file ?? { code: -1, at: now };
  const oom = oomOf({ ...of, code, ago_ms: now - at });
  return {
    exit_code: code,
    signal: code > 128 && code <= 128 + 64 ? code - 128 : -1,
    oom_killed: oom !== undefined,
    ...(oom ? { oom } : {}),
    exited_at: at,
  };
}

/** Exit files that monitors write when a machine ends, in one directory for all. */
export class Exits {
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #watcher: FSWatcher;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(layout: Layout, clock: Clock, ended: (id: string) => void) {
    this.#layout = layout;
    this.#clock = clock;
    this.#watcher = watch(layout.exits, { persistent: false }, (_, name) => {
      // The file is written under a temporary name first, which contains a dot.
      if (!name || name.includes(".") || !this.read(name)) return;
      const waiting = this.#waiting.get(name);
      if (waiting) for (const wake of waiting) wake();
      else ended(name);
    });
  }

  /** The exit code and its time; undefined when there is no exit file. */
  read(id: string): ExitFile | undefined {
    const { exit } = pathsOf(this.#layout, id);
    try {
      const text = readFileSync(exit, "utf8").trim();
      return text === "" ? undefined : { code: Number(text), at: Math.round(statSync(exit).mtimeMs) };
    } catch {
      return undefined;
    }
  }

  forget(id: string): void {
    rmSync(pathsOf(this.#layout, id).exit, { force: true });
  }

  /** Resolves when there is an exit file, or `over` says that none will come; false after `ms`. */
  async wait(id: string, ms: number, over: () => boolean): Promise<boolean> {
    const end = this.#clock.monotonic() + ms;
    for (;;) {
      if (this.read(id) || over()) return true;
      const left = end - this.#clock.monotonic();
      if (left <= 0) return false;
      await this.#next(id, Math.min(left, POLL_MS));
    }
  }

  async #next(id: string, ms: number): Promise<void> {
    const stop = new AbortController();
    const waiting = this.#waiting.get(id) ?? new Set();
    const wake = (): void => stop.abort();
    this.#waiting.set(id, waiting.add(wake));
    await this.#clock.sleep(ms, stop.signal).catch(() => {});
    waiting.delete(wake);
    if (waiting.size === 0) this.#waiting.delete(id);
  }

  close(): void {
    this.#watcher.close();
  }
}
