/** The private network between hosts, put together: part of platform.ts, on a page of its own. */

import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { Ipv4Claims } from "#drivers/net/ipv4-claims.ts";
import { openTunnel } from "#drivers/net/tunnel.ts";
import type { HostService } from "#hosts/service.ts";
import type { Directory } from "#network/directory.ts";
import { blockNet } from "#network/ipv4-blocks.ts";
import { OverlayNetwork, type PeerStore } from "#network/overlay.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlPeerStore } from "#stores/sql/peers.ts";

interface OverlayNeeds {
  clock: Clock;
  log: Log;
  sealer: Sealer;
  dir: DataDir;
  hosts: HostService;
  notifier: Notifier;
  directory: Directory;
  /** This process's IPv4 block. */
  ipv4_block: number | undefined;
  /** Whose blocks of addresses have a way on this box. */
  ipv4_claims: Ipv4Claims | undefined;
}

/** Undefined when not configured. */
export function openOverlay(
  database: Database,
  { host: { network, underlay }, role }: Settings,
  { sealer, dir, hosts, notifier, directory, clock, log, ipv4_block, ipv4_claims }: OverlayNeeds,
): Pick<OverlayNetwork, "start" | "close"> | undefined {
  if (network === "off") return undefined;
  const { node_id } = dir;
  const key = sealer.derive("private network between hosts");
  const mayRoute = routable(ipv4_claims, log);
  const tunnel = openTunnel(network, { node_id, underlay, key, ipv4_block, mayRoute });
  const store = sqlPeerStore(database);
  const own = hosts.own;
  const overlay = new OverlayNetwork({
    node_id,
    underlay,
    own,
    directory,
    store,
    hosts: () => hosts.hosts(),
    tunnel,
    notifier,
    clock,
    log,
  });
  return {
    start: () => overlay.start(),
    async close() {
      await overlay.close();
      // Machines of a host keep running and stay reachable; without machines the tunnel is not needed.
      if (role === "control") await tunnel.remove();
    },
  };
}

/** This process's block: one that no other process of the platform has, nor another platform on this box. */
export async function ownBlock(claims: Ipv4Claims, store: PeerStore, node_id: string): Promise<number | undefined> {
  for (;;) {
    const block = await store.takeBlock(node_id, claims.free());
    // Another platform may have claimed it meanwhile; then it is not free any more.
    if (block === undefined || claims.holds(blockNet(block))) return block;
  }
}

/** Says once which blocks another platform on this box has. */
function routable(claims: Ipv4Claims | undefined, log: Log): (net4: string) => boolean {
  const said = new Set<string>();
  return (net4) => {
    const ours = claims?.holds(net4) ?? true;
    if (!ours && !said.has(net4)) {
      said.add(net4);
      log.warn(
        { net4 },
        "another platform on this host has these IPv4 addresses: machines there are reached by IPv6 alone",
      );
    }
    return ours;
  };
}
