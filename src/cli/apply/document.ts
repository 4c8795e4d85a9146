/** The document of `hangar export` and `hangar apply`: exactly which apps, volumes and machines there shall be. */
import type { MachineConfig, Volume } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { UsageError } from "../verb.ts";

export interface AppDocument {
  name: string;
  org_slug: string;
  network?: string;
  /** Kinds of addresses, such as `shared_v4`. */
  ips: string[];
  /** Names only: values never leave the platform. */
  secrets: string[];
  volumes: VolumeDocument[];
  machines: MachineDocument[];
}

export interface VolumeDocument {
  /** What machines call it here: its name, with a number where several have the same. */
  ref: string;
  name: string;
  region: string;
  size_gb: number;
  snapshot_retention?: number;
  auto_backup_enabled?: boolean;
}

export interface MachineDocument {
  name: string;
  region?: string;
  /** `stopped` and the like: it is made and not started. Of a machine that is there the state stays as it is. */
  state?: string;
  /** As in the API, with `@ref` for the volume of a mount. */
  config: MachineConfig;
}

export interface Document {
  hangar: 1;
  apps: AppDocument[];
}

/** Volumes in the order they were made, each with the name it has in a document. */
export function refsOf(volumes: readonly Volume[]): Map<string, Volume> {
  const refs = new Map<string, Volume>();
  for (const volume of volumes.toSorted((a, b) => a.created_at.localeCompare(b.created_at))) {
    let ref = volume.name;
    for (let n = 2; refs.has(ref); n++) ref = `${volume.name}-${n}`;
    refs.set(ref, volume);
  }
  return refs;
}

/** The config with each volume in the other way of writing it. */
export function renameMounts(config: MachineConfig, rename: (volume: string) => string): MachineConfig {
  const { mounts } = config;
  if (!mounts) return config;
  return {
    ...config,
    mounts: mounts.map(({ volume, ...mount }) => (volume ? { ...mount, volume: rename(volume) } : mount)),
  };
}

/** Reads a document; what is wrong with its shape is said with its place. What a config may hold the platform says. */
export function readDocument(text: string, from: string): Document {
  const wrong = (problem: string): never => {
    throw new UsageError(`${from}: ${problem}`);
  };
  let value: Partial<Document>;
  try {
    value = JSON.parse(text) as Partial<Document>;
  } catch (thrown) {
    return wrong(`this is not JSON: ${messageOf(thrown)}`);
  }
  if (value.hangar !== 1 || !Array.isArray(value.apps))
    return wrong('a document is {"hangar": 1, "apps": […]}; `hangar export` writes one');
  const apps = value.apps.map((app: Partial<AppDocument>, at) => {
    const place = `apps[${at}]`;
    if (typeof app.name !== "string") return wrong(`${place} has no name`);
    for (const [n, machine] of (app.machines ?? []).entries()) {
      if (typeof machine.name !== "string") wrong(`${place}.machines[${n}] has no name`);
      if (typeof machine.config?.image !== "string") wrong(`${place}.machines[${n}] (${machine.name}) has no image`);
    }
    const volumes = (app.volumes ?? []).map((volume) => ({ ...volume, ref: volume.ref ?? volume.name }));
    const filled = { org_slug: "personal", ips: [], secrets: [], machines: [], ...app, volumes };
    return filled as AppDocument;
  });
  return { hangar: 1, apps };
}
