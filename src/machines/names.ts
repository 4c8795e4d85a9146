import type { Ids } from "#core/ids.ts";

const ADJECTIVES =
  "ancient autumn bold brave bright calm clever cold cool crimson dark dawn deep dry early empty falling fancy fast floral fragrant frosty gentle green hidden holy icy late light little lively long misty morning mute nameless old patient plain polished proud purple quiet rapid red restless rough shy silent small snowy solitary sparkling spring still summer throbbing twilight wandering warm weathered white wild winter wispy withered young".split(
    " ",
  );
const NOUNS =
  "bird breeze brook bush butterfly cherry cloud darkness dawn dew dream dust feather field fire firefly flower fog forest frog frost glade glitter grass haze hill lake leaf leaves meadow moon morning mountain night paper pine pond rain resonance river sea shadow shape silence sky smoke snow snowflake sound star sun sunset surf thunder tree violet voice water waterfall wave wildflower wind wood".split(
    " ",
  );

/** Generates a machine name: `quiet-river-1234`. */
export function machineName(ids: Ids): string {
  const [a = 0, b = 0, c = 0, d = 0] = ids.bytes(4);
  const pick = (list: readonly string[], n: number): string => list[n % list.length] ?? "plain";
  return `${pick(ADJECTIVES, a)}-${pick(NOUNS, b)}-${String(1000 + ((c * 256 + d) % 9000))}`;
}

/** Builds a machine's private address: `fdaa`, the network (8 hex digits), the host, the machine. */
export function privateAddress(machine: { id: string; network: string; host_id: string }): string {
  const text = `fdaa${machine.network}${machine.host_id}${machine.id}02`;
  const groups = text.match(/.{4}/g) ?? [];
  return groups.map((group) => group.replace(/^0{1,3}/, "")).join(":");
}

/** The same machine's address on another host: the fourth of the eight groups is the host. */
export function addressOn(private_ip: string, host_id: string): string {
  const groups = private_ip.split(":");
  groups[3] = host_id.replace(/^0{1,3}/, "");
  return groups.join(":");
}

/** The host part of a private address. */
export const hostOf = (private_ip: string): string => (private_ip.split(":")[3] ?? "").padStart(4, "0");

/** The first 48 bits, which all machines of a network share. */
export function networkPrefix(private_ip: string): string {
  const [head = ""] = private_ip.split("::");
  const groups = head.split(":");
  return [0, 1, 2].map((index) => groups[index] || "0").join(":");
}

/** The host's own address in a machine's network: gateway and DNS server. */
export const gatewayAddress = (private_ip: string): string => `${networkPrefix(private_ip)}::3`;

/** The route prefix that all machines of one network on one host share. */
export const hostPrefix = (private_ip: string): string => `${private_ip.split(":").slice(0, 4).join(":")}::/64`;
