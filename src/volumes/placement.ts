import { fail } from "#core/errors.ts";
import type { HostService } from "#hosts/service.ts";
import type { Host } from "#hosts/types.ts";
import type { UniqueZone } from "./store.ts";

export interface Wanted {
  name: string;
  region: string | undefined;
  /** Size of the machine that will mount it. */
  cpus: number;
  memory_mb: number;
  /** Zones to avoid, because they already have a volume. */
  taken_zones: readonly string[];
  unique_zone: UniqueZone;
  /** Required host, because its source is there. */
  host_id?: string;
}

/** Chooses a host for a volume. Fails with the reason: no free zone, no capacity, unknown region. */
export async function placeVolume(hosts: HostService, wanted: Wanted): Promise<Host> {
  const { region = hosts.default_region, cpus, memory_mb, taken_zones, host_id } = wanted;
  if (taken_zones.length > 0) {
    const here = (await hosts.hosts()).filter(
      (host) => (hosts.everywhere || host.region === region) && (host_id === undefined || host.id === host_id),
    );
    const zones = [...new Set(here.map(({ zone }) => zone))];
    if (zones.length > 0 && zones.every((zone) => taken_zones.includes(zone))) noZone(wanted, region, zones);
  }
  return await hosts.place({ region, cpus, memory_mb, not_zones: taken_zones, ...(host_id ? { host_id } : {}) });
}

function noZone({ name, unique_zone }: Wanted, region: string, zones: readonly string[]): never {
  const app_wide = unique_zone === "app";
  fail(
    "volume_placement_capacity",
    `insufficient resources to create new volume: every zone of region ${region} (${zones.join(", ")}) has a volume ` +
      `${app_wide ? "of this app" : `named ${JSON.stringify(name)}`} already, and ` +
      `${app_wide ? "unique_zone_app_wide" : "require_unique_zone"} is true`,
    {
      facts: { region, zones, require_unique_zone: true },
      hint: "pass require_unique_zone: false, another name, or another region",
    },
  );
}
