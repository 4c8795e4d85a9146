/** Counts what the firewall denied to each machine, by its address: outgoing connections, and those over its limit. */
import { program } from "../linux/program.ts";
import { firewallTable } from "./firewall.ts";

export type Denied = ReadonlyMap<string, number>;

/** Counts since the machine got its address; empty without a firewall. */
export async function readDenied(node_id: string): Promise<{ egress: Denied; connections: Denied }> {
  const [egress, connections] = await Promise.all(
    ["denied", "refused"].map(async (set) => {
      const lists = await Promise.all([4, 6].map((family) => counts(firewallTable(node_id), `${set}${family}`)));
      return new Map(lists.flat());
    }),
  );
  return { egress: egress ?? new Map(), connections: connections ?? new Map() };
}

async function counts(table: string, set: string): Promise<[string, number][]> {
  try {
    const text = await program("nft", ["--json", "list", "set", "inet", table, set]);
    const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: SetElement[] } }[] };
    const elements = nftables.flatMap((one) => one.set?.elem ?? []);
    return elements.map(({ elem }) => [elem.val, elem.counter.packets]);
  } catch {
    return [];
  }
}

interface SetElement {
  elem: { val: string; counter: { packets: number } };
}
