/**
 * Small files for applications that do not speak HTTP: `.primary` holds the primary's host:port and is absent on
 * the primary, `.lag` says in milliseconds how far a replica is behind, `NAME-pos` is a database's position.
 * Each is replaced whole. They are hints: written now and then, beside the work, and never in its way.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position } from "../position.ts";

export class StatusFiles {
  readonly #dir: string;
  readonly #written = new Map<string, string>();
  /** What each file is to say next; undefined: that it is to go. */
  readonly #wanted = new Map<string, (() => string) | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  primary(hostname: string | undefined): void {
    this.#want(".primary", hostname === undefined ? undefined : () => `${hostname}\n`);
    // Whether this node is primary is asked right after it has changed.
    this.flush();
  }

  lag(ms: number): void {
    this.#want(".lag", () => `${Math.max(0, Math.round(ms))}\n`);
  }

  position(name: string, position: Position): void {
    this.#want(`${name}-pos`, () => `${formatPosition(position)}\n`);
  }

  gone(name: string): void {
    this.#want(`${name}-pos`, undefined);
  }

  /** Writes what is wanted before it returns. */
  flush(): void {
    if (this.#closed) return;
    for (const [name, text] of this.#take()) {
      try {
        if (text !== undefined) writeFileSync(this.#fresh(name, "new"), text);
        this.#putInPlace(name, text, "new");
      } catch {
        // A full disk must not stop replication for the sake of a hint; the next change tries again.
        this.#written.delete(name);
      }
    }
  }

  /** Writes what is wanted. When this has resolved, nothing is written any more. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.flush();
    this.#closed = true;
    await this.#writing;
  }

  #want(name: string, text: (() => string) | undefined): void {
    this.#wanted.set(name, text);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // After the assignment: when there is nothing to write it has ended before.
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
        if (this.#wanted.size > 0) this.#schedule();
      });
    }, REPLICATION_LIMITS.status_files_ms).unref();
  }

  async #write(): Promise<void> {
    for (const [name, text] of this.#take()) {
      const fresh = this.#fresh(name, "next");
      try {
        if (text !== undefined) await writeFile(fresh, text);
        // Somebody may have said something newer meanwhile, and not waited for this.
        if (this.#written.get(name) === text) this.#putInPlace(name, text, "next");
        else await rm(fresh, { force: true });
      } catch {
        this.#written.delete(name);
      }
    }
  }

  #putInPlace(name: string, text: string | undefined, end: "new" | "next"): void {
    if (text === undefined) rmSync(join(this.#dir, name), { force: true });
    else renameSync(this.#fresh(name, end), join(this.#dir, name));
  }

  /** What differs from what is there. */
  #take(): [name: string, text: string | undefined][] {
    const changed: [string, string | undefined][] = [];
    for (const [name, make] of this.#wanted) {
      const text = make?.();
      if (text !== undefined && this.#written.get(name) === text) continue;
      if (text === undefined) this.#written.delete(name);
      else this.#written.set(name, text);
      changed.push([name, text]);
    }
    this.#wanted.clear();
    return changed;
  }

  /** Its name is in our own folder, so it is never taken for a database. */
  #fresh(name: string, end: "new" | "next"): string {
    return join(this.#dir, ".replication", `${name}.${end}`);
  }
}
