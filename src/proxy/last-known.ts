import { open, rename, stat, utimes } from "node:fs/promises";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { VERSION } from "#core/version.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { AppTable, Certificate } from "./table.ts";

/** What the workers serve by. */
export interface ProxyTables {
  apps: AppTable[];
  certificates: Certificate[];
}

/** The same, and who the edge proxy was, which is otherwise read from the database. */
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
 * What the edge proxy served last, in a file, so that a process that is started while the database is away serves it again.
 * It is sealed, since keys of certificates are in it. Its modification time says when a process last served by it: what
 * nobody looked after for long may lead to a machine of somebody else by now, and is not used.
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

  /** From now on the file follows `read`, whenever `changed` is called. */
  follow(read: () => ProxyTables & Pick<LastKnown, "region" | "host_id">): void {
    const first = this.#read === undefined;
    this.#read = read;
    this.#dirty = true;
    if (first) this.#writing = this.#keepWriting();
  }

  changed(): void {
    this.#dirty = true;
  }

  /** What a process of this version served a moment ago, or why that is not to be had. */
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

  /** Says that a process serves by what is in the file. */
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
        // A disk that is full stays so for a while; once is enough.
        if (!complained) log.warn({ error }, "the proxy's last known routes could not be written");
        complained = true;
      }
      // Large tables take their time: they may not take all of it.
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
