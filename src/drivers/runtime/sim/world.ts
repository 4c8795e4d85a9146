import type { Exit, ExitNotice } from "#machines/runtime/driver.ts";

export interface SimKnobs {
  pull_ms: number;
  boot_ms: number;
  stop_ms: number;
  exit_code: number;
  run_ms?: number;
  fail?: string;
  suspend?: string;
  freeze?: string;
  check?: string;
  /** TCP ports that accept connections. */
  listen?: number[];
}

export interface SimBoot {
  id: string;
  boot: string;
  state: "running" | "frozen" | "exited";
  /** Why a frozen machine cannot be resumed. */
  lost?: string;
  exit?: Exit;
  started_at: number;
  knobs: SimKnobs;
  log: { seq: number; timestamp: number; message: string }[];
}

/** The simulated host: what remains when the controlling process dies. */
export class SimWorld {
  readonly boots = new Map<string, SimBoot>();
  /** Positions of readers of the logs, by machine and reader. */
  readonly positions = new Map<string, string>();
  readonly #listeners = new Set<(notice: ExitNotice) => void>();
  readonly #readers = new Map<string, Set<() => void>>();

  listen(listener: (notice: ExitNotice) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  watchLogs(id: string, wake: () => void): () => void {
    const readers = this.#readers.get(id) ?? new Set();
    this.#readers.set(id, readers.add(wake));
    return () => {
      readers.delete(wake);
      if (readers.size === 0 && this.#readers.get(id) === readers) this.#readers.delete(id);
    };
  }

  wrote(id: string): void {
    for (const wake of this.#readers.get(id) ?? []) wake();
  }

  /** Simulates a host restart: nothing runs any more, without exit notices, and memory is lost. */
  reboot(): void {
    for (const boot of this.boots.values()) {
      if (boot.state === "running") boot.state = "exited";
      else if (boot.knobs.freeze) boot.lost = "the host was restarted while it was suspended";
    }
  }

  /** Ends a boot and notifies listeners. */
  exit(boot: SimBoot, exit: Exit): void {
    Object.assign(boot, { state: "exited", exit });
    for (const listener of this.#listeners) listener({ id: boot.id, boot: boot.boot, ...exit });
  }

  /** Ends a machine from outside, like a crash of its program; the notice may be lost or duplicated. */
  crash(id: string, exit: Exit, notice: "once" | "lost" | "twice" = "once"): boolean {
    const boot = this.boots.get(id);
    if (boot?.state !== "running") return false;
    if (notice === "lost") Object.assign(boot, { state: "exited", exit });
    else this.exit(boot, exit);
    if (notice === "twice") this.exit(boot, exit);
    return true;
  }
}
