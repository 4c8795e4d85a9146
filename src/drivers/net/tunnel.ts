/**
 * The tunnel to other hosts: one device, this process's own address on it, and a route for each network on each host.
 * The carrier encapsulates packets (vxlan.ts, wireguard.ts); tunnel-rules.ts filters what arrives.
 *
 * Everything is read from the kernel before it is changed, so it is correct after a crash, after manual changes, and
 * when it is repeated. Our routes are identified by a protocol number of our own.
 */
import { existsSync, readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { addressBytes } from "#network/bytes.ts";
import { processIpv4 } from "#network/ipv4-blocks.ts";
import { platformAddress, type RemotePeer, type Tunnel } from "#network/overlay.ts";
import { program } from "../linux/program.ts";
import { Forwarding } from "./forwarding.ts";
import { setting } from "./kernel-settings.ts";
import { deviceName } from "./names.ts";
import { loadTunnelRules, removeTunnelRules } from "./tunnel-rules.ts";
import { vxlan } from "./vxlan.ts";
import { wireguard } from "./wireguard.ts";

const CARRIERS = { vxlan, wireguard } as const;
export type CarrierName = keyof typeof CARRIERS;

/** Our protocol number, which marks our routes. */
const PROTOCOL = "172";
/** Maximum overhead of the carriers. */
const AROUND_BYTES = 80;
const USUAL_MTU = 1500;

export interface TunnelParts {
  node_id: string;
  underlay: string;
  key: Uint8Array;
  /** This process's IPv4 block; without one there are no IPv4 routes. */
  ipv4_block: number | undefined;
  /** Whether a block of IPv4 addresses is this platform's on this box; otherwise there is no route to it. */
  mayRoute(net4: string): boolean;
}

export function openTunnel(name: CarrierName, parts: TunnelParts): Tunnel {
  const { node_id, underlay, ipv4_block } = parts;
  const device = deviceName(node_id, "t", node_id);
  const carrier = CARRIERS[name]({ ...parts, device, mtu: mtuOf(underlay) - AROUND_BYTES });
  const address = platformAddress(node_id);
  const address4 = ipv4_block === undefined ? undefined : processIpv4(ipv4_block);
  const forwarding = new Forwarding();
  return {
    async keep(ends) {
      // The rules are loaded before packets can arrive.
      await loadTunnelRules(node_id, device, carrier.knocks(ends));
      if (!(await carrier.stands())) {
        await removeDevice(device);
        await carrier.make();
        setting(`ipv6/conf/${device}/accept_ra`, "0");
        forwarding.passOn(device);
      }
      const own4 = address4 ? [`address replace ${address4}/32 dev ${device} scope link`] : [];
      await ip([`address replace ${address}/128 dev ${device} nodad`, `link set ${device} up`, ...own4]);
      await carrier.keep(ends);
      await keepRoutes("-6", device, wantedRoutes(ends, address, carrier.neighbours));
      const own_ends = ends.filter(({ net4 }) => net4 !== undefined && parts.mayRoute(net4));
      if (address4) await keepRoutes("-4", device, wantedRoutes4(own_ends, address4, carrier.neighbours));
    },
    async remove() {
      await removeDevice(device);
      await removeTunnelRules(node_id);
      forwarding.end();
    },
  };
}

interface Route {
  dst: string;
  gateway: string;
  src: string;
}

function wantedRoutes(ends: readonly RemotePeer[], src: string, neighbours: boolean): Route[] {
  return ends.flatMap(({ address, nets }) => [
    { dst: `${address}/128`, gateway: "", src },
    ...nets.map((dst) => ({ dst, gateway: neighbours ? address : "", src })),
  ]);
}

/** One route per process, to its IPv4 block, via the same neighbours as IPv6. */
const wantedRoutes4 = (ends: readonly RemotePeer[], src: string, neighbours: boolean): Route[] =>
  ends.flatMap(({ address, net4 }) => (net4 ? [{ dst: net4, gateway: neighbours ? address : "", src }] : []));

interface ShownRoute {
  dst: string;
  gateway?: string;
  /** A gateway of the other address family. */
  via?: { host: string };
  prefsrc?: string;
}

async function keepRoutes(family: "-4" | "-6", device: string, wanted: readonly Route[]): Promise<void> {
  const shown = await program("ip", [family, "-j", "route", "show", "dev", device, "proto", PROTOCOL]);
  const found = JSON.parse(shown || "[]") as ShownRoute[];
  const there = found.map(({ dst, gateway, via, prefsrc: src = "" }) => ({
    dst,
    gateway: gateway ?? via?.host ?? "",
    src,
  }));
  const keys = new Set(wanted.map(keyOf));
  const known = new Set(there.map(keyOf));
  await ip([
    ...there
      .filter((route) => !keys.has(keyOf(route)))
      .map(({ dst }) => `route del ${dst} dev ${device} proto ${PROTOCOL}`),
    // Neighbours first: routes via unknown ones are refused.
    ...wanted
      .filter((route) => !known.has(keyOf(route)))
      .sort((a, b) => a.gateway.length - b.gateway.length)
      .map(
        ({ dst, gateway, src }) =>
          `route replace ${dst} ${viaOf(family, gateway)}dev ${device} src ${src} proto ${PROTOCOL}`,
      ),
  ]);
}

const viaOf = (family: "-4" | "-6", gateway: string): string =>
  gateway === "" ? "" : `via ${family === "-4" ? "inet6 " : ""}${gateway} `;

/** A normalized key of a route. */
function keyOf({ dst, gateway, src }: Route): string {
  const [net = "", length = "128"] = dst.split("/");
  const hex = (address: string): string => (address ? Buffer.from(addressBytes(address)).toString("hex") : "");
  return `${hex(net)}/${length} ${hex(gateway)} ${hex(src)}`;
}

/** Runs `ip` with a batch of lines. */
async function ip(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await program("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
}

async function removeDevice(device: string): Promise<void> {
  if (existsSync(`/sys/class/net/${device}`)) await program("ip", ["link", "del", device]);
}

/** The MTU between hosts. */
function mtuOf(underlay: string): number {
  const bytes = (address: string): string => Buffer.from(addressBytes(address)).toString("hex");
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    const here = addresses.some(
      ({ address }) => isIPv6(address) === isIPv6(underlay) && bytes(address) === bytes(underlay),
    );
    if (here) return Number(readFileSync(`/sys/class/net/${name}/mtu`, "utf8")) || USUAL_MTU;
  }
  return USUAL_MTU;
}
