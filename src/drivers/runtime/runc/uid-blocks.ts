import { createHash } from "node:crypto";
import type { HostClaims } from "#core/host-claims.ts";

export const BLOCK = 65_536;
/** systemd's container range, without its first part, which small hosts assign to users. */
const FIRST = 16;
const COUNT = 28_656;

/** Two installations may have used the same ids before blocks were claimed. */
export const UIDS_LOST =
  "another installation on this host has the user ids of this machine; it gets others at its next start";

/**
 * Assigns each machine 65536 user ids that are unique on this host across installations: a block is claimed before use.
 * The search starts at a position derived from the machine's id.
 */
export class UidBlocks {
  readonly #claims: Pick<HostClaims, "take" | "release" | "tidy">;

  constructor(claims: Pick<HostClaims, "take" | "release" | "tidy">) {
    this.#claims = claims;
  }

  /** Returns the machine's block: its previous one, or another if that was taken. Fails when all are taken. */
  take(id: string, before?: number): number {
    if (before !== undefined && this.holds(id, before)) return before;
    const begin = createHash("sha256").update(id).digest().readUInt32BE(0) % COUNT;
    for (let i = 0; i < COUNT; i++) {
      const base = (FIRST + ((begin + i) % COUNT)) * BLOCK;
      if (this.holds(id, base)) return base;
    }
    throw new Error(`this host has no user ids left for another machine (${COUNT} machines have theirs)`);
  }

  /** Whether the machine holds the block, claiming it if free. */
  holds(id: string, base: number): boolean {
    return this.#claims.take(nameOf(base), pathOf(id)) === undefined;
  }

  release(id: string, base: number): void {
    this.#claims.release(nameOf(base), pathOf(id));
  }

  /** Releases blocks that a crash left claimed: only these machines have one each. */
  keepOnly(machines: readonly { id: string; uid_base: number }[]): void {
    const needed = new Set(machines.map(({ id, uid_base }) => `${nameOf(uid_base)} ${pathOf(id)}`));
    this.#claims.tidy((name, path) => needed.has(`${name} ${path}`));
  }
}

const nameOf = (base: number): string => String(base);
const pathOf = (id: string): string => `machines/${id}`;

/** A machine's index on this host, unique like its ids, for deriving other unique values. */
export const indexOf = (uid_base: number): number => uid_base / BLOCK - FIRST;
