import { open, rename, stat, utimes } from "node:fs/promises";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { VERSION } from "#core/version.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { AppTable, Certificate } from "./table.ts";

/** The tables that the workers serve. */
export interface ProxyTables {
  apps: AppTable[];
  certificates: Certificate[];
}

/** The tables and the proxy's own identity, which otherwise come from the database. */
interface LastKnown extends ProxyTables {
  version: string;
  region: string;
  host_id: string;
}

interface LastKnownParts {
  file: string;
  sealer: Sealer;
  clock: Clock;
  log: Log;
}

const PLACE = "proxy:last-known";

/**
 * Stores what the edge proxy served last in a file, so that a process that starts without the database can serve it
 * again. The file is sealed, because it contains certificate keys. Its modification time is the last time that a
 * process served it: old tables are not used, because their addresses may belong to other machines by now.
 */
export class LastKnownTables {
  readonly #parts: LastKnownParts;
  #read: (() => ProxyTables & Pick<LastKnown, "region" | "host_id">) | undefined;
  #dirty = false;
  #writing: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(parts: LastKnownParts) {
    this.#parts = parts;
  }

  /** Writes `read()` to the file whenever `changed` is called. */
  follow(read: () => ProxyTables & Pick<LastKnown, "region" | "host_id">): void {
    const first = this.#read === undefined;
    this.#read = read;
    this.#dirty = true;
    if (first) this.#writing = this.#keepWriting();
  }

  changed(): void {
    this.#dirty = true;
  }

  /** Loads what a process of this version served recently, or returns why it cannot. */
  async load(): Promise<LastKnown | { problem: string }> {
    const { file, sealer, clock } = this.#parts;
    try {
      const age_ms = Math.abs(clock.now() - (await stat(file)).mtimeMs);
      if (age_ms > PROXY_LIMITS.last_known_ms)
        return { problem: `they were last in force ${Math.round(age_ms / 60_000)} minutes ago (limit last_known_ms)` };
      const handle = await open(file);
      await using _closed = { [Symbol.asyncDispose]: () => handle.close() };
      const known = JSON.parse(sealer.open(PLACE, await handle.readFile()).toString()) as LastKnown;
      return known.version === VERSION ? known : { problem: `they are of version ${known.version}` };
    } catch {
      return { problem: "they cannot be read" };
    }
  }

  /** Marks the file's tables as in use. */
  async confirm(): Promise<void> {
    const seconds = this.#parts.clock.now() / 1000;
    await utimes(this.#parts.file, seconds, seconds).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  async #keepWriting(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    let complained = false;
    while (!signal.aborted) {
      const began = clock.monotonic();
      try {
        if (this.#dirty) await this.#write();
        else await this.confirm();
        complained = false;
      } catch (error) {
        this.#dirty = true;
        // A full disk stays full for a while; it is logged once.
        if (!complained) log.warn({ error }, "the proxy's last known routes could not be written");
        complained = true;
      }
      // Limits the share of time spent writing large tables.
      const wait_ms = Math.max(PROXY_LIMITS.last_known_write_ms, 20 * (clock.monotonic() - began));
      await clock.sleep(wait_ms, signal).catch(() => {});
    }
    if (this.#dirty) await this.#write().catch(() => {});
  }

  async #write(): Promise<void> {
    const { file, sealer } = this.#parts;
    if (!this.#read) return;
    this.#dirty = false;
    const bytes = sealer.seal(PLACE, JSON.stringify({ version: VERSION, ...this.#read() } satisfies LastKnown));
    const fresh = `${file}.new`;
    const handle = await open(fresh, "w", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(fresh, file);
  }
}
