import { createHash } from "node:crypto";
import type { HostClaims } from "#core/host-claims.ts";

export const BLOCK = 65_536;
/** The range that systemd leaves to containers, without its first part, which small hosts give to people. */
const FIRST = 16;
const COUNT = 28_656;

/** Two installations may have taken the same ids before blocks were claimed. */
export const UIDS_LOST =
  "another installation on this host has the user ids of this machine; it gets others at its next start";

/**
 * Gives each machine 65536 user ids that no other machine of this host has, whichever installation it belongs to: a block
 * is claimed before anything is made with it. Where a machine's search begins is made from its id.
 */
export class UidBlocks {
  readonly #claims: Pick<HostClaims, "take" | "release" | "tidy">;

  constructor(claims: Pick<HostClaims, "take" | "release" | "tidy">) {
    this.#claims = claims;
  }

  /** Answers the machine's block: the one it had, or another when that is somebody else's by now. Full: it fails. */
  take(id: string, before?: number): number {
    if (before !== undefined && this.holds(id, before)) return before;
    const begin = createHash("sha256").update(id).digest().readUInt32BE(0) % COUNT;
    for (let i = 0; i < COUNT; i++) {
      const base = (FIRST + ((begin + i) % COUNT)) * BLOCK;
      if (this.holds(id, base)) return base;
    }
    throw new Error(`this host has no user ids left for another machine (${COUNT} machines have theirs)`);
  }

  /** Whether a block is the machine's, now if it was nobody's. */
  holds(id: string, base: number): boolean {
    return this.#claims.take(nameOf(base), pathOf(id)) === undefined;
  }

  release(id: string, base: number): void {
    this.#claims.release(nameOf(base), pathOf(id));
  }

  /** Gives back what a crash left claimed: only these machines have a block each. */
  keepOnly(machines: readonly { id: string; uid_base: number }[]): void {
    const needed = new Set(machines.map(({ id, uid_base }) => `${nameOf(uid_base)} ${pathOf(id)}`));
    this.#claims.tidy((name, path) => needed.has(`${name} ${path}`));
  }
}

const nameOf = (base: number): string => String(base);
const pathOf = (id: string): string => `machines/${id}`;

/** A machine's place among all of this host, from its ids: other things that must differ are made from it. */
export const indexOf = (uid_base: number): number => uid_base / BLOCK - FIRST;
