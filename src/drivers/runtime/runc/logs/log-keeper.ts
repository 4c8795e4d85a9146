/** Rotates the logs of machines, and deletes those of destroyed ones after their retention. */
import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { type Layout, pathsOf } from "../layout.ts";
import { RUNC_LIMITS } from "../limits.ts";

const LOOK_MS = 2000;
/** Old logs are swept once in this many checks. */
const SWEEP = 300;
/** Marks the log of a destroyed machine; its age is the log's. */
const DESTROYED = "destroyed";
/** The monitor reopens the log when anything arrives on its pipe. */
const REOPEN = "\n";

export class LogKeeper {
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closing = new AbortController();

  constructor(layout: Layout, clock: Clock, log: Log) {
    this.#layout = layout;
    this.#clock = clock;
    this.#log = log;
  }

  async run(): Promise<void> {
    const { signal } = this.#closing;
    for (let round = 0; !signal.aborted; round++) {
      try {
        this.look();
        if (round % SWEEP === 0) this.sweep();
      } catch (error) {
        this.#log.warn({ error }, "log rotation of machines failed");
      }
      await this.#clock.sleep(LOOK_MS, signal).catch(() => {});
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Rotates full logs. The monitor does so too, later, when we are not running. */
  look(): void {
    for (const id of readdirSync(this.#layout.containers)) {
      const paths = pathsOf(this.#layout, id);
      const size = statSync(paths.log, { throwIfNoEntry: false })?.size ?? 0;
      if (size < RUNC_LIMITS.log_bytes) continue;
      renameSync(paths.log, `${paths.log}.1`);
      tellMonitor(paths.control);
    }
  }

  destroyed(id: string): void {
    const { logs } = pathsOf(this.#layout, id);
    if (statSync(logs, { throwIfNoEntry: false })) writeFileSync(join(logs, DESTROYED), "");
  }

  /** Deletes logs of destroyed machines: old ones, and the oldest when there are too many. */
  sweep(): void {
    const now = this.#clock.now();
    const removed = readdirSync(this.#layout.logs)
      .flatMap((id) => {
        const mark = statSync(join(this.#layout.logs, id, DESTROYED), { throwIfNoEntry: false });
        return mark ? [{ id, at: mark.mtimeMs }] : [];
      })
      .sort((a, b) => b.at - a.at);
    const old = removed.filter(
      ({ at }, index) => now - at > RUNC_LIMITS.logs_kept_ms || index >= RUNC_LIMITS.logs_kept_machines,
    );
    for (const { id } of old) rmSync(join(this.#layout.logs, id), { recursive: true, force: true });
  }
}

function tellMonitor(pipe: string): void {
  try {
    const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      writeSync(fd, REOPEN);
    } finally {
      closeSync(fd);
    }
  } catch {
    // It has just ended; the next boot opens the log by name.
  }
}
