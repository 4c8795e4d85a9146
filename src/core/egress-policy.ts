/** An app's egress policy: what its machines may reach outside their private network. */
import { type Cidr, parseCidr } from "./cidr.ts";

export const EGRESS_MODES = ["all", "none", "list"] as const;

export interface EgressPolicy {
  /** `all` except closed ranges; `none`; or what `allow` lists. */
  mode: (typeof EGRESS_MODES)[number];
  /** `TO[:PORT[-PORT]][/tcp|/udp]`, where TO is an address, a range, a DNS name or `*.` and a DNS name. */
  allow: readonly string[];
}

export const ALL_EGRESS: EgressPolicy = { mode: "all", allow: [] };

/** A parsed entry of `allow`. It has a range or a name. */
export interface EgressTarget {
  cidr?: Cidr;
  /** Lower case; `*.example.com` covers every name below example.com. */
  name?: string;
  protocol?: "tcp" | "udp";
  ports?: readonly [first: number, last: number];
}

const NAME = /^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
const NAME_CHARS = 253;
const ENTRY =
  /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^[\]]+?))(?::(?<first>\d{1,5})(?:-(?<last>\d{1,5}))?)?(?:\/(?<protocol>tcp|udp))?$/;

/** Undefined when invalid. */
export function parseEgressTarget(text: string): EgressTarget | undefined {
  // An IPv6 range without brackets ends in what looks like a port.
  const whole = parseCidr(text.replace(/\/(tcp|udp)$/, ""));
  const { groups } = ENTRY.exec(whole?.family === 6 ? text.replace(/^[^/]+(\/\d+)?/, "[$&]") : text) ?? {};
  if (!groups) return undefined;
  const to = (groups["bracketed"] ?? groups["plain"] ?? "").toLowerCase().replace(/\.$/, "");
  const cidr = parseCidr(to);
  if (!cidr && (!NAME.test(to) || to.length > NAME_CHARS)) return undefined;
  const ports = portsOf(groups["first"], groups["last"]);
  if (ports === "wrong") return undefined;
  const protocol = groups["protocol"] as "tcp" | "udp" | undefined;
  return { ...(cidr ? { cidr } : { name: to }), ...(protocol ? { protocol } : {}), ...(ports ? { ports } : {}) };
}

function portsOf(first: string | undefined, last = first): [number, number] | "wrong" | undefined {
  if (first === undefined) return undefined;
  const ports: [number, number] = [Number(first), Number(last)];
  return ports[0] < 1 || ports[1] > 65_535 || ports[0] > ports[1] ? "wrong" : ports;
}

/** Whether a queried name is that of an entry, or below it. */
export const isNamed = (query: string, name: string): boolean =>
  name.startsWith("*.") ? query.endsWith(name.slice(1)) : query === name;

/** The parsed entries of a policy; invalid ones are refused when the policy is set. */
export const targetsOf = ({ mode, allow }: EgressPolicy): EgressTarget[] =>
  mode === "list" ? allow.flatMap((text) => parseEgressTarget(text) ?? []) : [];

/** Whether a policy allows DNS queries for a name. */
export const namesAllowed = (policy: EgressPolicy, query: string): boolean =>
  policy.mode === "all" || targetsOf(policy).some(({ name }) => name !== undefined && isNamed(query, name));
