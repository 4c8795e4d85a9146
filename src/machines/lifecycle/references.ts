/** What a config refers to: the volume that it mounts, the machines that it stands by for. */
import type { Problem } from "#core/errors.ts";
import type { VolumeFinder, VolumePlace } from "../inputs.ts";
import type { MachineStore } from "../store.ts";
import type { MachineConfig } from "../types.ts";
import { refuseVolume, rejectInvalid } from "./rules.ts";

const MOUNT = "body.config.mounts.0";

interface ReferenceParts {
  store: MachineStore;
  volumes?: VolumeFinder;
}

/** The machine whose config refers to a resource; a new one has no previous config. */
interface Referrer {
  app_id: string;
  machine_id: string;
  before?: MachineConfig;
}

/** Returns the config with the id of its volume, and the volume's place. A name is resolved to an unattached volume. */
export async function mountedVolume(
  { volumes }: ReferenceParts,
  { app_id, machine_id }: Referrer,
  { config, region }: { config: MachineConfig; region?: string | undefined },
): Promise<{ config: MachineConfig; place?: VolumePlace }> {
  const [mount] = config.mounts ?? [];
  if (!mount) return { config };
  const volume = mount.volume || (await freeVolume(volumes, app_id, region, mount.name));
  if (!volume) rejectInvalid([{ path: `${MOUNT}.volume`, problem: "is required" }]);
  if (!volume || !volumes) return { config };
  const place = refuseVolume(volume, await volumes.locate(volume), { app_id, machine_id, region });
  rejectInvalid(mountProblems(mount, place));
  return { config: { ...config, mounts: [{ ...mount, volume }] }, place };
}

/**
 * Finds a volume by name, in the region if one is given, preferring one that can be mounted; obstacles are reported
 * later.
 */
async function freeVolume(
  volumes: VolumeFinder | undefined,
  app_id: string,
  region: string | undefined,
  name: string | undefined,
): Promise<string | undefined> {
  if (!volumes || !name) return undefined;
  const found = await volumes.named(app_id, name);
  const rank = (place: VolumePlace): number =>
    (region === undefined || place.region === region ? 0 : 4) +
    (place.attached_machine_id === null ? 0 : 2) +
    (place.unready === undefined ? 0 : 1);
  const [best] = found.toSorted((a, b) => rank(a) - rank(b));
  if (!best) rejectInvalid([{ path: `${MOUNT}.name`, problem: `${JSON.stringify(name)} is not a volume of this app` }]);
  return best?.id;
}

/** What a mount states about its volume. */
interface Claims {
  name?: string | undefined;
  encrypted?: boolean | undefined;
}

function mountProblems({ name, encrypted }: Claims, place: VolumePlace): Problem[] {
  const found: Problem[] = [];
  if (name && name !== place.name) {
    found.push({
      path: `${MOUNT}.name`,
      problem: `is ${JSON.stringify(name)}, but volume ${place.id} is ${place.name}`,
    });
  }
  if (encrypted && !place.encrypted) {
    found.push({ path: `${MOUNT}.encrypted`, problem: `is true, but volume ${place.id} is not encrypted` });
  }
  return found;
}

/** Refuses invalid references that an update adds; unchanged ones are not checked again. */
export async function refuseReferences(parts: ReferenceParts, who: Referrer, config: MachineConfig): Promise<void> {
  const [mount] = config.mounts ?? [];
  const [old] = who.before?.mounts ?? [];
  const claims: Claims = {
    name: mount?.name === old?.name ? undefined : mount?.name,
    encrypted: mount?.encrypted === old?.encrypted ? undefined : mount?.encrypted,
  };
  const needsPlace = Boolean(claims.name) || claims.encrypted === true;
  const place = needsPlace && old?.volume ? await parts.volumes?.locate(old.volume) : undefined;
  rejectInvalid([...(place ? mountProblems(claims, place) : []), ...(await standbyProblems(parts, who, config))]);
}

export async function standbyProblems(
  { store }: ReferenceParts,
  { app_id, machine_id, before }: Referrer,
  { standbys = [] }: MachineConfig,
): Promise<Problem[]> {
  const found: Problem[] = [];
  for (const [index, id] of standbys.entries()) {
    if (before?.standbys?.includes(id)) continue;
    const path = `body.config.standbys.${index}`;
    const machine = id === machine_id ? undefined : await store.find(id);
    if (id === machine_id) found.push({ path, problem: "is the machine itself" });
    else if (!machine || machine.app_id !== app_id || machine.state === "destroyed") {
      found.push({ path, problem: `${JSON.stringify(id)} is not a machine of this app` });
    }
  }
  return found;
}

/** Warns about mount fields that differ from the volume without preventing the mount. */
export async function mountWarnings({ volumes }: ReferenceParts, { mounts }: MachineConfig): Promise<string[]> {
  const [mount] = mounts ?? [];
  const needsPlace = mount?.size_gb || mount?.encrypted === false;
  const place = needsPlace && mount?.volume ? await volumes?.locate(mount.volume) : undefined;
  if (!mount || !place) return [];
  const found: string[] = [];
  if (mount.size_gb && mount.size_gb !== place.size_gb) {
    found.push(
      `config.mounts.0.size_gb is ${mount.size_gb}, but volume ${place.id} has ${place.size_gb} GB; extend it`,
    );
  }
  if (mount.encrypted === false && place.encrypted) {
    found.push(`config.mounts.0.encrypted is false, but volume ${place.id} is encrypted`);
  }
  return found;
}
