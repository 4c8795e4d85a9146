/**
 * Filters what arrives from the tunnel to other hosts, as nftables rules in a table of their own: tunnel packets only
 * from participating hosts, none with a spoofed source address, to this host itself only replies. Packets for machines
 * are filtered in firewall.ts.
 */
import { program } from "../linux/program.ts";
import { devicePrefix } from "./names.ts";

const tableOf = (node_id: string): string => `hangar_${node_id}_far`;

/** `knocks` are rules for the tunnel's own port. */
export async function loadTunnelRules(node_id: string, device: string, knocks: readonly string[]): Promise<void> {
  const table = tableOf(node_id);
  await nft(`
add table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain here {
    type filter hook input priority filter; policy accept;
    ${knocks.join("\n    ")}
    iifname "${device}" jump far
  }
  chain far {
    fib saddr . iif oif missing drop
    ct state { established, related } accept
    icmpv6 type echo-request accept
    drop
  }
  chain through {
    type filter hook forward priority filter; policy accept;
    iifname "${device}" oifname != "${devicePrefix(node_id)}b*" drop
  }
}`);
}

export async function removeTunnelRules(node_id: string): Promise<void> {
  await nft(`delete table inet ${tableOf(node_id)}`).catch(() => {});
}

const nft = (text: string): Promise<string> => program("nft", ["-f", "-"], { input: `${text}\n` });
