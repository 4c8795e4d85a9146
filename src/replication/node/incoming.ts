/** Snapshots as they arrive: each into a file of its own, until it is whole. */
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type ReceivedSnapshot, verifySnapshot } from "../database/snapshot.ts";
import { writeAll } from "../durable.ts";

interface Receiving {
  name: string;
  path: string;
  fd: number;
}

export class Incoming {
  readonly #dir: string;
  #receiving: Receiving | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The database that is being received. */
  get name(): string | undefined {
    return this.#receiving?.name;
  }

  begin(name: string): void {
    this.drop();
    const path = join(this.#dir, ".replication", `${name}.incoming.ltx`);
    this.#receiving = { name, path, fd: openSync(path, "w", 0o600) };
  }

  write(part: Buffer): void {
    if (this.#receiving) writeAll(this.#receiving.fd, part);
  }

  /** Throws `LtxError` when it is not whole. */
  verify(): ReceivedSnapshot | undefined {
    return this.#receiving && verifySnapshot(this.#receiving.path);
  }

  drop(): void {
    const receiving = this.#receiving;
    this.#receiving = undefined;
    if (!receiving) return;
    closeSync(receiving.fd);
    rmSync(receiving.path, { force: true });
  }
}
