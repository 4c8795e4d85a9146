/**
 * Small files for applications that do not speak HTTP: `.primary` holds the primary's host:port and is absent on
 * the primary, `.lag` says in milliseconds how far a replica is behind, `NAME-pos` is a database's position.
 * Each is replaced atomically. They are hints: written in the background, with a delay.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position } from "../position.ts";

export class StatusFiles {
  readonly #dir: string;
  readonly #written = new Map<string, string>();
  /** Pending content by file; undefined: to be removed. */
  readonly #wanted = new Map<string, (() => string) | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  primary(hostname: string | undefined): void {
    this.#want(".primary", hostname === undefined ? undefined : () => `${hostname}\n`);
    // The role file must be current right after a change.
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

  /** Writes synchronously. */
  flush(): void {
    if (this.#closed) return;
    for (const [name, text] of this.#take()) {
      try {
        if (text !== undefined) writeFileSync(this.#fresh(name, "new"), text);
        this.#putInPlace(name, text, "new");
      } catch {
        // A full disk must not stop replication; the next change retries.
        this.#written.delete(name);
      }
    }
  }

  /** Writes what is pending. When this has resolved, nothing more is written. */
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
      // After the assignment, because without work it has already ended.
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
        // Newer content may have been set meanwhile.
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

  /** Files whose content differs. */
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

  /** In our own directory, so it is never taken for a database. */
  #fresh(name: string, end: "new" | "next"): string {
    return join(this.#dir, ".replication", `${name}.${end}`);
  }
}
