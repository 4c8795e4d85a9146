/**
 * Claims of IPv4 blocks on this host. Routes belong to the host, not to a platform: two platforms with several hosts
 * that both route the same block would take each other's traffic. So a platform claims a block on the host before it
 * adds an address or a route of it. All processes of one platform share its claims.
 */
import { mkdirSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { type Claim, claimsOf, HostClaims } from "#core/host-claims.ts";
import { blockNet, SHARED_BLOCKS } from "#network/ipv4-blocks.ts";

const KIND = "ipv4";

export class Ipv4Claims {
  readonly #claims: HostClaims;
  readonly #dir: string | undefined;
  /** Below the data dir, with the name of the platform. */
  readonly #path: string;
  readonly #platform: string;

  /** `platform` is the same in all processes of a platform, and in no other. */
  constructor(data_dir: string, platform: Uint8Array, claims_dir?: string) {
    mkdirSync(join(data_dir, "machines"), { recursive: true, mode: 0o700 });
    this.#claims = new HostClaims(KIND, data_dir, claims_dir);
    this.#dir = claims_dir;
    this.#platform = Buffer.from(platform).toString("hex").slice(0, 16);
    this.#path = `machines/${this.#platform}`;
  }

  /**
   * Blocks that no other platform on this host has. Each platform starts at its own offset, so that they rarely
   * collide.
   */
  free(): number[] {
    const first = Number.parseInt(this.#platform.slice(0, 8), 16) % SHARED_BLOCKS.length;
    const others = new Set(
      claimsOf(KIND, this.#dir)
        .filter((claim) => !this.#isOurs(claim))
        .map(({ name }) => name),
    );
    const inOrder = [...SHARED_BLOCKS.slice(first), ...SHARED_BLOCKS.slice(0, first)];
    return inOrder.filter((block) => !others.has(nameOf(blockNet(block))));
  }

  /** Claims the block if it is free, and returns whether this platform has it on this host. */
  holds(net: string): boolean {
    const name = nameOf(net);
    const of = this.#claims.take(name, this.#path);
    return of === undefined || this.#isOurs({ name, of });
  }

  #isOurs({ of }: Claim): boolean {
    return basename(of) === this.#platform;
  }
}

/** Releases the claims of an installation that was removed from this host. */
export const releaseIpv4 = (data_dir: string, claims_dir?: string): void =>
  new HostClaims(KIND, data_dir, claims_dir).tidy(() => false);

/** Routes belong to a network namespace, so claims are per namespace. */
const nameOf = (net: string): string =>
  `${net.replace("/", "-")}@${readlinkSync("/proc/self/ns/net").replace(/\D/g, "")}`;
