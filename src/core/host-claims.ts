/**
 * Allocates host-wide resources among the installations on one host: user ids, IPv4 addresses, device names. Each claim
 * is a symbolic link in a folder of the host, whose target is a path below the data dir of its owner. Creating a link
 * is atomic, so a claim is never given twice; it outlives crashes and reboots, like the disks whose files belong to
 * those ids. A claim is valid as long as its data dir exists.
 */
import { existsSync, mkdirSync, readdirSync, readlinkSync, realpathSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { holdLock } from "./file-lock.ts";

/** Per host, not per installation. */
export const CLAIMS_DIR = "/var/lib/hangar-claims";

export type ClaimKind = "uids" | "devices" | "ipv4";

export interface Claim {
  name: string;
  /** The purpose of the claim: a path below the data dir. */
  of: string;
}

export class HostClaims {
  readonly #dir: string;
  readonly #lock: string;
  readonly #data_dir: string;

  /** The data dir already exists. */
  constructor(kind: ClaimKind, data_dir: string, claims_dir = CLAIMS_DIR) {
    this.#dir = join(claims_dir, kind);
    this.#lock = join(claims_dir, "lock");
    this.#data_dir = realpathSync(data_dir);
    mkdirSync(this.#dir, { recursive: true, mode: 0o755 });
  }

  /** Undefined when this installation has the claim, otherwise its holder. */
  take(name: string, path: string): string | undefined {
    const of = join(this.#data_dir, path);
    const holder = this.#try(name, of);
    if (holder === undefined || !isAbandoned(holder)) return holder;
    this.#removeWhere((found) => isAbandoned(found.of));
    return this.#try(name, of);
  }

  release(name: string, path: string): void {
    if (targetOf(join(this.#dir, name)) === join(this.#data_dir, path)) rmSync(join(this.#dir, name), { force: true });
  }

  /** Releases this installation's unneeded claims, and those of removed data dirs. */
  tidy(isNeeded: (name: string, path: string) => boolean): void {
    const isOurs = (of: string): boolean => dataDirOf(of) === this.#data_dir;
    this.#removeWhere(({ name, of }) =>
      isOurs(of) ? !isNeeded(name, of.slice(this.#data_dir.length + 1)) : isAbandoned(of),
    );
  }

  #try(name: string, of: string): string | undefined {
    const file = join(this.#dir, name);
    try {
      symlinkSync(of, file);
      return undefined;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
    }
    const holder = targetOf(file);
    // It was just released: try again.
    if (holder === undefined) return this.#try(name, of);
    return holder === of ? undefined : holder;
  }

  /**
   * Runs under a lock: an abandoned claim may be taken again before another process removes it. A second caller skips
   * this.
   */
  #removeWhere(isOver: (claim: Claim) => boolean): void {
    const lock = holdLock(this.#lock);
    try {
      if (lock) for (const claim of claimsIn(this.#dir)) if (isOver(claim)) rmSync(join(this.#dir, claim.name));
    } finally {
      lock?.release();
    }
  }
}

/** All claims on this host. */
export const claimsOf = (kind: ClaimKind, claims_dir = CLAIMS_DIR): Claim[] => claimsIn(join(claims_dir, kind));

/** Releases the claims of removed data dirs; removes the folder with the last claim. */
export function forgetRemoved(claims_dir = CLAIMS_DIR): void {
  const kinds = existsSync(claims_dir) ? readdirSync(claims_dir).map((kind) => join(claims_dir, kind)) : [];
  const claims = kinds
    .filter((dir) => statSync(dir).isDirectory())
    .flatMap((dir) => claimsIn(dir).map((claim) => ({ ...claim, dir })));
  const abandoned = claims.filter(({ of }) => isAbandoned(of));
  for (const { dir, name } of abandoned) rmSync(join(dir, name));
  if (abandoned.length === claims.length) rmSync(claims_dir, { recursive: true, force: true });
}

function claimsIn(dir: string): Claim[] {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  return names.flatMap((name) => {
    const of = targetOf(join(dir, name));
    return of === undefined ? [] : [{ name, of }];
  });
}

const MARK = "/machines";

/** The data dir that a claim belongs to. */
export const dataDirOf = (of: string): string => of.slice(0, of.lastIndexOf(MARK));

/** A removed data dir needs no claims. Its parent may belong to someone else by now. */
const isAbandoned = (of: string): boolean => !existsSync(`${dataDirOf(of)}${MARK}`);

function targetOf(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch {
    return undefined;
  }
}
