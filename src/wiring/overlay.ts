/** The private network between hosts, put together: part of platform.ts, on a page of its own. */

import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import { openTunnel } from "#drivers/net/tunnel.ts";
import type { HostService } from "#hosts/service.ts";
import type { Directory } from "#network/directory.ts";
import { OverlayNetwork } from "#network/overlay.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlPeerStore } from "#stores/sql/peers.ts";

interface FabricNeeds {
  clock: Clock;
  log: Log;
  sealer: Sealer;
  dir: DataDir;
  hosts: HostService;
  notifier: Notifier;
  directory: Directory;
  /** This process's IPv4 block. */
  ipv4_block: number | undefined;
}

/** Undefined when not configured. */
export function openOverlay(
  database: Database,
  { host: { network, underlay }, role }: Settings,
  { sealer, dir, hosts, notifier, directory, clock, log, ipv4_block }: FabricNeeds,
): Pick<OverlayNetwork, "start" | "close"> | undefined {
  if (network === "off") return undefined;
  const { node_id } = dir;
  const key = sealer.derive("private network between hosts");
  const tunnel = openTunnel(network, { node_id, underlay, key, ipv4_block });
  const store = sqlPeerStore(database);
  const own = hosts.own;
  const fabric = new OverlayNetwork({
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
    start: () => fabric.start(),
    async close() {
      await fabric.close();
      // Machines of a host keep running and stay reachable; without machines the tunnel is not needed.
      if (role === "control") await tunnel.remove();
    },
  };
}
