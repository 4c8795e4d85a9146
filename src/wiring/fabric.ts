/** The private network between hosts, put together: part of platform.ts, on a page of its own. */
import type { Box } from "#core/box.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import type { Wire } from "#core/wire.ts";
import { openTunnel } from "#drivers/net/tunnel.ts";
import type { HostService } from "#hosts/service.ts";
import type { Directory } from "#network/directory.ts";
import { Fabric } from "#network/fabric.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlPeerStore } from "#stores/sql/peers.ts";

interface FabricNeeds {
  clock: Clock;
  log: Log;
  box: Box;
  dir: DataDir;
  hosts: HostService;
  wire: Wire;
  directory: Directory;
  /** The block of IPv4 addresses that this process has. */
  ipv4_block: number | undefined;
}

/** Undefined when the settings want none. */
export function openFabric(
  database: Database,
  { host: { network, underlay }, role }: Settings,
  { box, dir, hosts, wire, directory, clock, log, ipv4_block }: FabricNeeds,
): Pick<Fabric, "start" | "close"> | undefined {
  if (network === "off") return undefined;
  const { node_id } = dir;
  const key = box.derive("private network between hosts");
  const tunnel = openTunnel(network, { node_id, underlay, key, ipv4_block });
  const store = sqlPeerStore(database);
  const own = hosts.own;
  const fabric = new Fabric({
    node_id,
    underlay,
    own,
    directory,
    store,
    hosts: () => hosts.hosts(),
    tunnel,
    wire,
    clock,
    log,
  });
  return {
    start: () => fabric.start(),
    async close() {
      await fabric.close();
      // What runs on a host runs on without us, and is reached; without machines nobody needs it.
      if (role === "control") await tunnel.remove();
    },
  };
}
