import { createHash } from "node:crypto";

export const BLOCK = 65_536;
/** The range that systemd leaves to containers, without its first part, which small hosts give to people. */
const FIRST = 16;
const COUNT = 28_656;

/**
 * Gives each machine 65536 user ids of this host that no other machine has. Where a machine's search begins is made
 * from its id, so two installations on one host hardly ever meet; what is taken is kept in the machines' records.
 */
export class UidBlocks {
  readonly #taken = new Map<number, string>();

  /** Answers the machine's block, giving it one if it has none. Full: the start fails and says so. */
  take(id: string, before?: number): number {
    if (before !== undefined && this.#free(before / BLOCK, id)) return this.#keep(before / BLOCK, id);
    const begin = createHash("sha256").update(id).digest().readUInt32BE(0) % COUNT;
    for (let i = 0; i < COUNT; i++) {
      const block = FIRST + ((begin + i) % COUNT);
      if (this.#free(block, id)) return this.#keep(block, id);
    }
    throw new Error(`this host has no user ids left for another machine (${COUNT} machines have theirs)`);
  }

  release(base: number): void {
    this.#taken.delete(base / BLOCK);
  }

  #free(block: number, id: string): boolean {
    const owner = this.#taken.get(block);
    return owner === undefined || owner === id;
  }

  #keep(block: number, id: string): number {
    this.#taken.set(block, id);
    return block * BLOCK;
  }
}

/** A machine's place among all of this host, from its ids: other things that must differ are made from it. */
export const indexOf = (uid_base: number): number => uid_base / BLOCK - FIRST;
