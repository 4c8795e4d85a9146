/**
 * VXLAN carrier: unencrypted packets in UDP, for trusted networks only. There is no learning: the forwarding table is
 * written from the store.
 */
import { isIPv6 } from "node:net";
import { addressBytes } from "#network/bytes.ts";
import { program } from "../linux/program.ts";
import type { Carrier, CarrierParts } from "./carrier.ts";
import { hardware } from "./names.ts";

const PORT = 4789;
const hex = (address: string): string => Buffer.from(addressBytes(address)).toString("hex");

export function vxlan({ device, node_id, underlay, mtu, key }: CarrierParts): Carrier {
  /** Distinguishes platforms on one network (VNI); 24 bits. */
  const id = Buffer.from(key).readUIntBE(0, 3);
  const macOf = (node: string): string => hardware(`tunnel ${node}`);
  return {
    neighbours: true,
    async stands() {
      const [link] = await show<{ address: string; mtu: number; linkinfo?: { info_data?: Data } }>("ip", [
        "-d",
        "-j",
        "link",
        "show",
        "dev",
        device,
      ]);
      const { id: number, local, local6 } = link?.linkinfo?.info_data ?? {};
      const at = local ?? local6 ?? "";
      return (
        number === id && at !== "" && hex(at) === hex(underlay) && link?.address === macOf(node_id) && link.mtu === mtu
      );
    },
    async make() {
      const kind = ["type", "vxlan", "id", String(id), "local", underlay, "dstport", String(PORT), "nolearning"];
      await program("ip", ["link", "add", device, "address", macOf(node_id), "mtu", String(mtu), ...kind]);
      await program("ip", ["link", "set", device, "addrgenmode", "none"]);
    },
    async keep(ends) {
      await keepList("bridge", ["-j", "fdb", "show", "dev", device], {
        wanted: ends.map((end) => `${macOf(end.node_id)} ${end.underlay}`),
        shown: ({ mac = "", dst = "" }: { mac?: string; dst?: string }) => (dst ? `${mac} ${dst}` : ""),
        add: ([mac, dst]) => `fdb replace ${mac} dev ${device} dst ${dst} self permanent`,
        remove: ([mac, dst]) => `fdb del ${mac} dev ${device} dst ${dst} self`,
      });
      await keepList("ip", ["-6", "-j", "neigh", "show", "dev", device, "nud", "permanent"], {
        wanted: ends.map(({ node_id: node, address }) => `${hex(address)} ${macOf(node)} ${address}`),
        shown: ({ dst = "", lladdr = "" }: { dst?: string; lladdr?: string }) => `${hex(dst)} ${lladdr} ${dst}`,
        same: (line) => line.split(" ").slice(0, 2).join(" "),
        add: ([, mac, address]) => `neigh replace ${address} lladdr ${mac} dev ${device} nud permanent`,
        remove: ([, , address]) => `neigh del ${address} dev ${device}`,
      });
    },
    knocks: (ends) =>
      (["ip", "ip6"] as const).flatMap((family) => {
        const theirs = ends.map((end) => end.underlay).filter((address) => isIPv6(address) === (family === "ip6"));
        const ours = `meta protocol ${family} udp dport ${PORT} @th,96,24 ${id}`;
        return theirs.length > 0 ? `${ours} ${family} saddr != { ${theirs.join(", ")} } drop` : `${ours} drop`;
      }),
  };
}

interface Data {
  id?: number;
  local?: string;
  local6?: string;
}

interface Listed<Shown> {
  /** Each as one line of arguments. */
  wanted: readonly string[];
  shown(row: Shown): string;
  /** The part that is compared; by default all of it. */
  same?(line: string): string;
  add(args: string[]): string;
  remove(args: string[]): string;
}

/** Reconciles a list of the kernel: reads it and changes only what differs. */
async function keepList<Shown>(name: "ip" | "bridge", reading: readonly string[], list: Listed<Shown>): Promise<void> {
  const { wanted, shown, add, remove, same = (line: string) => line } = list;
  const there = (await show<Shown>(name, reading)).map(shown).filter((line) => line !== "");
  const without = (all: readonly string[], others: readonly string[]): string[][] => {
    const known = new Set(others.map(same));
    return all.filter((line) => !known.has(same(line))).map((line) => line.split(" "));
  };
  const lines = [...without(there, wanted).map(remove), ...without(wanted, there).map(add)];
  if (lines.length > 0) await program(name, ["-batch", "-"], { input: `${lines.join("\n")}\n` });
}

/** A program's JSON output; empty when the device does not exist. */
async function show<Shown>(name: string, args: readonly string[]): Promise<Shown[]> {
  const text = await program(name, args).catch(() => "");
  return JSON.parse(text.trim() || "[]") as Shown[];
}
