/**
 * Checks that addresses are public. Connections to a host that a user named (the gateway, image pulls) resolve the name
 * once, check every address, and connect to one of those, which prevents DNS rebinding.
 */
import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** Non-public ranges: this host, private networks, and ranges that are translated to them. */
const REFUSED_V4 =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4";
/** Non-public ranges within global unicast: tunnels (Teredo, 6to4), documentation, benchmarks. */
const REFUSED_V6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";

const refused = new BlockList();
const global = new BlockList();
for (const [list, family] of [
  [REFUSED_V4, "ipv4"],
  [REFUSED_V6, "ipv6"],
] as const) {
  for (const net of list.split(" ")) refused.addSubnet(net.split("/")[0] ?? "", Number(net.split("/")[1]), family);
}
global.addSubnet("2000::", 3, "ipv6");

/** Whether an address is public. False for anything that is not an address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused.check(address, "ipv4");
  // Everything else is local, private, or an embedded IPv4 address (::ffff:…, 64:ff9b::…, ::127.0.0.1).
  return family === 6 && global.check(address, "ipv6") && !refused.check(address, "ipv6");
}

/** The connection would go to a non-public address. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
  constructor(host: string, address: string) {
    super(host === address ? `${address} is not a public address` : `${host} is at ${address}, not a public address`);
  }
}

export type Lookup = (
  host: string,
  options: { all: true; family?: number | "IPv4" | "IPv6"; hints?: number },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A DNS lookup that fails when one of the addresses is not public. */
export function guardedLookup(resolve: Lookup = systemLookup as Lookup): LookupFunction {
  return (host, options, done) => {
    const { family, hints } = options;
    const all = { all: true as const, ...(family ? { family } : {}), ...(hints ? { hints } : {}) };
    resolve(host, all, (error, addresses) => {
      const [first] = addresses ?? [];
      const wrong = addresses?.find(({ address }) => !isPublicAddress(address));
      if (error || !first) return done(error ?? new Error(`${host} has no address`), "");
      if (wrong) return done(new AddressRefused(host, wrong.address), "");
      if (options.all) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
}

/** Checks a host that is written as an address, before any lookup. */
export function literalProblem(hostname: string): AddressRefused | undefined {
  const host = hostname.replace(/^\[|\]$/g, "");
  return isIP(host) !== 0 && !isPublicAddress(host) ? new AddressRefused(host, host) : undefined;
}
