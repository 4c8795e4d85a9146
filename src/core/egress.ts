/**
 * Rules for what machines may reach outside their private network. Some ranges are closed to all machines unless the
 * operator opens them (`egress_allow`): they contain the host's own networks and cloud metadata services, which would
 * take a machine for the host. An app's policy can restrict the rest.
 */
import { type Cidr, isInside, parseCidr } from "./cidr.ts";

const CLOSED_IPV4: readonly (readonly [cidr: string, what: string])[] = [
  ["0.0.0.0/8", "this host"],
  ["10.0.0.0/8", "private networks"],
  ["100.64.0.0/10", "carrier-grade NAT, and machines of other networks"],
  ["127.0.0.0/8", "loopback"],
  ["168.63.129.16/32", "the platform service of Azure"],
  ["169.254.0.0/16", "link-local, where clouds have their metadata services"],
  ["172.16.0.0/12", "private networks"],
  ["192.0.0.0/24", "protocol assignments, a metadata service among them"],
  ["192.168.0.0/16", "private networks"],
  ["224.0.0.0/3", "multicast, reserved and broadcast"],
];

const CLOSED_IPV6: readonly (readonly [cidr: string, what: string])[] = [
  ["::/96", "this host and loopback"],
  ["::ffff:0:0/96", "IPv4 addresses in IPv6"],
  ["64:ff9b:1::/48", "NAT64 into local networks"],
  ["2002::/16", "6to4"],
  ["fc00::/7", "unique local addresses: private networks, and machines of other networks"],
  ["fe80::/9", "link-local and site-local"],
  ["ff00::/8", "multicast"],
];

interface ClosedRange extends Cidr {
  what: string;
}

const range = ([text, what]: readonly [string, string]): ClosedRange[] => {
  const cidr = parseCidr(text);
  return cidr ? [{ ...cidr, what }] : [];
};

const throughNat64 = ([text, what]: readonly [string, string]): readonly [string, string] => {
  const [address, length] = text.split("/");
  return [`64:ff9b::${address}/${96 + Number(length)}`, `${what}, through NAT64`];
};

/** All ranges that are closed by default. */
export const CLOSED_RANGES: readonly ClosedRange[] = [
  ...CLOSED_IPV4,
  ...CLOSED_IPV6,
  ...CLOSED_IPV4.map(throughNat64),
].flatMap(range);

/** The closed range that contains a range, unless the operator opened it. */
export function closedRange(cidr: Cidr, opened: readonly Cidr[]): ClosedRange | undefined {
  if (opened.some((one) => isInside(cidr, one))) return undefined;
  return CLOSED_RANGES.find((one) => isInside(cidr, one));
}
