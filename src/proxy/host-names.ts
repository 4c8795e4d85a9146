/** Which host names an app may claim, which of them its wildcards cover, and how an organization proves that one is its. */
import { createHmac } from "node:crypto";
import dns from "node:dns";
import { fail } from "#core/errors.ts";
import type { Sealer } from "#core/sealer.ts";
import { PROXY_LIMITS } from "./limits.ts";

const NAME = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,62}$/;
/** URL parsers read a name as an IPv4 address if its last label is a decimal or hexadecimal number. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
/** Special-use names that resolve to the local host or network. */
const SPECIAL = ["localhost", "internal", "local"];

/** The platform's own names. */
export interface OwnNames {
  /** Apps have names below it. */
  domain: string;
  /** Hosts of the API, the gateway and the token issuer. */
  hosts: readonly string[];
}

/** Why no app may use the name, or undefined. `hostname` is in lower case. */
export function hostNameProblem(hostname: string, { domain, hosts }: OwnNames): string | undefined {
  const base = hostname.replace(/^\*\./, "");
  if (!NAME.test(hostname) || hostname.length > 253) return "is not a host name such as www.example.com";
  if (NUMBER.test(base)) return "is an address, not a host name";
  if (base === domain || base.endsWith(`.${domain}`))
    return `is the platform's: names below ${domain} belong to the apps they name`;
  if (hosts.includes(hostname)) return "is the platform's own name";
  const special = SPECIAL.find((zone) => base === zone || base.endsWith(`.${zone}`));
  return special && `is below ${special}, which is not a public domain`;
}

/** Returns the normalized name; throws when no app may use it. */
export function checkHostName(given: string, own: OwnNames): string {
  const hostname = given.toLowerCase().replace(/\.$/, "");
  const problem = hostNameProblem(hostname, own);
  return problem === undefined ? hostname : wrongName(`${JSON.stringify(given.slice(0, 300))} ${problem}`);
}

export function wrongName(problem: string): never {
  fail("invalid_name", problem, { details: [{ path: "body.hostname", problem }] });
}

/** Whether a wildcard covers the name: it covers exactly one label. */
export function isCovered(name: string, wildcard: string): boolean {
  const dot = name.indexOf(".");
  return dot > 0 && wildcard === `*${name.slice(dot)}` && !name.startsWith("*");
}

/** A name whose ownership an organization has proved. */
interface Held {
  hostname: string;
  org_id: string;
}

/** Names that an organization's wildcards do not cover: those that others proved, and the platform's own. */
export function reservedNames(
  org_id: string,
  wildcards: readonly string[],
  held: readonly Held[],
  own: OwnNames,
): string[] {
  if (wildcards.length === 0) return [];
  const others = held.filter((one) => one.org_id !== org_id).map(({ hostname }) => hostname);
  return [...others, own.domain, ...own.hosts].filter((name) => wildcards.some((one) => isCovered(name, one)));
}

/** The TXT record by which the owner of a DNS zone grants a name to an organization. */
export interface OwnershipRecord {
  name: string;
  value: string;
}

/** Deterministic for an organization and a name, so that a record set once stays valid. */
export function ownershipRecord(sealer: Sealer, org_id: string, hostname: string): OwnershipRecord {
  const mac = createHmac("sha256", sealer.derive("host name ownership")).update(`${org_id} ${hostname}`).digest("hex");
  return { name: `_hangar-ownership.${hostname.replace(/^\*\./, "")}`, value: `hangar-ownership=${mac.slice(0, 40)}` };
}

/** TXT records of a name; empty when there are none. Fails when the name servers do not respond. */
export type TxtLookup = (name: string) => Promise<string[]>;

/** Queries the name servers of this process. */
export const lookUpTxt: TxtLookup = async (name) => {
  const { txt_timeout_ms: timeout, txt_tries: tries } = PROXY_LIMITS;
  const resolver = new dns.promises.Resolver({ timeout, tries });
  resolver.setServers(dns.getServers());
  try {
    return (await resolver.resolveTxt(name)).map((parts) => parts.join(""));
  } catch (thrown) {
    if (["ENODATA", "ENOTFOUND"].includes((thrown as NodeJS.ErrnoException).code ?? "")) return [];
    throw thrown;
  }
};

/** Undefined when the record is set, otherwise what is wrong, for the person who sets it. */
export async function ownershipProblem(
  { name, value }: OwnershipRecord,
  lookup: TxtLookup,
): Promise<string | undefined> {
  const set = `set the TXT record ${name} to ${value}, then check again`;
  try {
    const found = await lookup(name);
    if (found.includes(value)) return undefined;
    return found.length === 0 ? `there is no TXT record yet: ${set}` : `the TXT record has another value: ${set}`;
  } catch (thrown) {
    return `the name servers did not answer (${(thrown as NodeJS.ErrnoException).code ?? "no reason"}): ${set}`;
  }
}
