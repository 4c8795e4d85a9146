/** Snapshots as they arrive: each into a file of its own, until it is whole. What came of one that broke off is kept. */
import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { mergeSnapshots, type PartialSnapshot, readPartial } from "../database/partial-snapshot.ts";
import { type ReceivedSnapshot, verifySnapshot } from "../database/snapshot.ts";
import { writeAll } from "../durable.ts";
import { LtxError } from "../ltx/codec.ts";
import { isDatabaseName } from "./directory.ts";

interface Receiving {
  name: string;
  fd: number;
  /** Blocks that are not sent again, because they were kept. */
  kept: ReadonlySet<number>;
}

type Blocks = Pick<ReadonlySet<number>, "has">;
/** Checksums decide which of them are still valid. */
const ALL_BLOCKS: Blocks = { has: () => true };

const PARTIAL = ".partial.ltx";
const INCOMING = ".incoming.ltx";

export class Incoming {
  readonly #dir: string;
  #receiving: Receiving | undefined;

  constructor(dir: string) {
    this.#dir = join(dir, ".replication");
  }

  /** The database that is being received. */
  get name(): string | undefined {
    return this.#receiving?.name;
  }

  /** Interrupted snapshots, also of an earlier process. */
  partials(): Map<string, PartialSnapshot> {
    const partials = new Map<string, PartialSnapshot>();
    for (const file of readdirSync(this.#dir)) {
      const [, name = "", end = ""] = /^(.+)(\.(?:partial|incoming)\.ltx)$/.exec(file) ?? [];
      if (!isDatabaseName(name) || name === this.name) continue;
      if (end === INCOMING) this.#keepLeftOver(name);
      const partial = existsSync(this.#path(name, PARTIAL)) ? readPartial(this.#path(name, PARTIAL)) : undefined;
      if (partial) partials.set(name, partial);
      else this.forget(name);
    }
    return partials;
  }

  /** Keeps what a killed process left, merged with what it continued. */
  #keepLeftOver(name: string): void {
    const incoming = this.#path(name, INCOMING);
    if (!existsSync(this.#path(name, PARTIAL))) {
      renameSync(incoming, this.#path(name, PARTIAL));
      return;
    }
    try {
      this.#mergeIntoPartial(name, ALL_BLOCKS);
    } catch (error) {
      // Not even its header is complete.
      if (!(error instanceof LtxError)) throw error;
    }
    rmSync(incoming, { force: true });
  }

  /** `kept`: blocks that are not sent again. */
  begin(name: string, kept: ReadonlySet<number> = new Set()): void {
    this.drop();
    if (kept.size === 0) this.forget(name);
    this.#receiving = { name, kept, fd: openSync(this.#path(name, INCOMING), "w", 0o600) };
  }

  write(part: Buffer): void {
    if (this.#receiving) writeAll(this.#receiving.fd, part);
  }

  /** Throws `LtxError` when it is incomplete. */
  verify(): ReceivedSnapshot | undefined {
    if (!this.#receiving) return undefined;
    const { name, kept } = this.#receiving;
    if (kept.size === 0) return verifySnapshot(this.#path(name, INCOMING));
    this.#merge(name, kept, false);
    return verifySnapshot(this.#path(name, ".merged.ltx"));
  }

  #mergeIntoPartial(name: string, kept: Blocks): void {
    this.#merge(name, kept, true);
    renameSync(this.#path(name, ".merged.ltx"), this.#path(name, PARTIAL));
  }

  #merge(name: string, kept: Blocks, as_much_as_there_is: boolean): void {
    const [partial, incoming] = [this.#path(name, PARTIAL), this.#path(name, INCOMING)];
    mergeSnapshots({ partial, kept, incoming, as_much_as_there_is }, this.#path(name, ".merged.ltx"));
  }

  /** The connection broke: the received part is kept for the next one. */
  interrupt(): void {
    const receiving = this.#receiving;
    if (!receiving) return;
    const { name, kept } = receiving;
    if (kept.size > 0) {
      this.#mergeIntoPartial(name, kept);
    } else {
      renameSync(this.#path(name, INCOMING), this.#path(name, PARTIAL));
    }
    this.drop();
  }

  /** Drops the snapshot being received. */
  drop(): void {
    const receiving = this.#receiving;
    this.#receiving = undefined;
    if (!receiving) return;
    closeSync(receiving.fd);
    for (const end of [INCOMING, ".merged.ltx"]) rmSync(this.#path(receiving.name, end), { force: true });
  }

  /** Drops what was kept of a database. */
  forget(name: string): void {
    rmSync(this.#path(name, PARTIAL), { force: true });
  }

  #path(name: string, end: string): string {
    return join(this.#dir, `${name}${end}`);
  }
}
