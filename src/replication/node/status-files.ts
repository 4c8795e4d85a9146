/**
 * Small files for applications that do not speak HTTP: `.primary` holds the primary's host:port and is absent on
 * the primary, `.lag` says in milliseconds how far a replica is behind, `NAME-pos` is a database's position.
 * Each is replaced whole, at most once in a while.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position } from "../position.ts";

export class StatusFiles {
  readonly #dir: string;
  readonly #written = new Map<string, string>();
  readonly #changed = new Map<string, Position>();
  #timer: NodeJS.Timeout | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  primary(hostname: string | undefined): void {
    this.#write(".primary", hostname === undefined ? undefined : `${hostname}\n`);
  }

  lag(ms: number): void {
    this.#write(".lag", `${Math.max(0, Math.round(ms))}\n`);
  }

  position(name: string, position: Position): void {
    this.#changed.set(name, position);
    this.#timer ??= setTimeout(() => this.flush(), REPLICATION_LIMITS.status_files_ms).unref();
  }

  gone(name: string): void {
    this.#changed.delete(name);
    this.#write(`${name}-pos`, undefined);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [name, position] of this.#changed) this.#write(`${name}-pos`, `${formatPosition(position)}\n`);
    this.#changed.clear();
  }

  #write(name: string, text: string | undefined): void {
    if (this.#written.get(name) === text && text !== undefined) return;
    const path = join(this.#dir, name);
    try {
      if (text === undefined) {
        rmSync(path, { force: true });
        this.#written.delete(name);
        return;
      }
      // The name of the fresh file begins with a dot: it is never taken for a database.
      const fresh = join(this.#dir, ".replication", `${name}.new`);
      writeFileSync(fresh, text);
      renameSync(fresh, path);
      this.#written.set(name, text);
    } catch {
      // A full disk must not stop replication for the sake of a hint; the next change tries again.
    }
  }
}
