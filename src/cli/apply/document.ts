/** The desired-state file of `hangar export` and `hangar apply`: all apps, volumes and machines that shall exist. */
import type { MachineConfig, Volume } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { UsageError } from "../verb.ts";

export interface AppDocument {
  name: string;
  org_slug: string;
  network?: string;
  /** Kinds of addresses, such as `shared_v4`. */
  ips: string[];
  /** Names only: values are never exported. */
  secrets: string[];
  volumes: VolumeDocument[];
  machines: MachineDocument[];
}

export interface VolumeDocument {
  /** Name of the volume in a document: numbered where several volumes have the same name. */
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
  /** For example `stopped`: created but not started. An existing machine keeps its state. */
  state?: string;
  /** As in the API, with `@ref` for a mount's volume. */
  config: MachineConfig;
}

export interface Document {
  hangar: 1;
  apps: AppDocument[];
}

/** Volumes by creation, with their names in a document. */
export function refsOf(volumes: readonly Volume[]): Map<string, Volume> {
  const refs = new Map<string, Volume>();
  for (const volume of volumes.toSorted((a, b) => a.created_at.localeCompare(b.created_at))) {
    let ref = volume.name;
    for (let n = 2; refs.has(ref); n++) ref = `${volume.name}-${n}`;
    refs.set(ref, volume);
  }
  return refs;
}

/** Converts mounts between ids and refs. */
export function renameMounts(config: MachineConfig, rename: (volume: string) => string): MachineConfig {
  const { mounts } = config;
  if (!mounts) return config;
  return {
    ...config,
    mounts: mounts.map(({ volume, ...mount }) => (volume ? { ...mount, volume: rename(volume) } : mount)),
  };
}

/** Parses and validates a document, with positions. The platform validates configs. */
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
