/** Converts an app of Fly's API to an app of a desired-state document, with notes on what cannot be converted. */
import type { MachineConfig, Volume } from "#client/api.ts";
import { count } from "#core/words.ts";
import { type AppDocument, type MachineDocument, refsOf, renameMounts } from "../apply/document.ts";
import type { FlyApi } from "./fly-api.ts";

type Fields = Record<string, unknown>;

/** The API responses about an app. */
export interface FlyApp {
  app: Fields;
  machines: Fields[];
  volumes: Fields[];
  ips: Fields[];
  secrets: Fields[];
  certificates: Fields[];
}

export interface Imported {
  document: AppDocument;
  /** What is missing or different in the document, for display. */
  notes: string[];
}

/** Undefined: there is no such app. */
export async function readFlyApp(api: FlyApi, name: string): Promise<FlyApp | undefined> {
  const path = `/v1/apps/${encodeURIComponent(name)}`;
  const app = await api.find(path);
  if (app === undefined) return undefined;
  const list = async (part: string, key = part): Promise<Fields[]> => rowsOf(await api.find(`${path}/${part}`), key);
  const [machines, volumes, ips, secrets, certificates] = await Promise.all([
    list("machines"),
    list("volumes"),
    list("ip_assignments", "ips"),
    list("secrets"),
    list("certificates"),
  ]);
  return { app: app as Fields, machines, volumes, ips, secrets, certificates };
}

/** Rows of a list, which is the answer or one of its fields. */
export function rowsOf(answer: unknown, key: string): Fields[] {
  const list: unknown = Array.isArray(answer) ? answer : (answer as Fields | undefined)?.[key];
  return Array.isArray(list) ? list.filter((one): one is Fields => typeof one === "object" && one !== null) : [];
}

/** Fields of a config, and whether a machine here has them. */
const CARRIED: Record<keyof MachineConfig, boolean> = {
  image: true,
  auto_destroy: true,
  checks: true,
  dns: true,
  env: true,
  files: true,
  guest: true,
  init: true,
  metadata: true,
  metrics: true,
  mounts: true,
  processes: true,
  restart: true,
  schedule: true,
  services: true,
  size: true,
  // Ids of machines, which change.
  standbys: false,
  // Fly has none: LiteFS is a part of the image.
  sqlite: false,
  statics: true,
  stop_config: true,
  containers: false,
  volumes: false,
  rootfs: true,
  cache_drive: false,
  spot: false,
  disable_machine_autostart: true,
};
const GONE = new Set(["destroyed", "destroying", "pending_destroy", "scheduling_destroy"]);
/** States in which the imported machine is started; in any other it stays stopped. */
const RUNNING = new Set(["started", "starting", "restarting", "replacing"]);

export interface Target {
  org_slug: string;
  /** The region of all machines and volumes; otherwise each keeps its own. */
  region: string | undefined;
}

export function importedApp(from: FlyApp, target: Target): Imported {
  const name = textOf(from.app["name"]);
  const notes: string[] = [];
  const note = (text: string): void => void notes.push(`${name}: ${text}`);
  const regionOf = ({ region }: Fields): string => target.region ?? textOf(region);
  const refs = refsOf(from.volumes.filter(there) as unknown as Volume[]);
  const refOf = new Map([...refs].map(([ref, { id }]) => [id, ref]));
  const machines = from.machines.filter(there).map((machine): MachineDocument => {
    const region = regionOf(machine);
    const config = configOf(machine, refOf, note);
    const state = RUNNING.has(textOf(machine["state"])) ? "started" : "stopped";
    return { name: textOf(machine["name"]).toLowerCase(), ...(region ? { region } : {}), state, config };
  });
  if (refs.size > 0) note(`${count(refs.size, "volume")} will be empty: copy the data yourself`);
  const secrets = from.secrets.map((one) => textOf(one["name"] ?? one["label"]));
  for (const secret of secrets)
    note(`the value of secret ${secret} cannot be read: hangar secrets set --app ${name} ${secret}=-`);
  for (const { hostname } of from.certificates)
    note(`host name ${textOf(hostname)}: hangar certs add --app ${name} ${textOf(hostname)}, once its DNS points here`);
  const { network } = from.app;
  return {
    notes,
    document: {
      name,
      org_slug: target.org_slug,
      ...(typeof network === "string" && network !== "" ? { network } : {}),
      ips: addressesOf(from.ips, note),
      secrets,
      volumes: [...refs].map(([ref, volume]) => ({
        ref,
        name: volume.name,
        region: regionOf(volume as unknown as Fields),
        size_gb: volume.size_gb,
        ...(volume.snapshot_retention === undefined ? {} : { snapshot_retention: volume.snapshot_retention }),
        ...(volume.auto_backup_enabled === undefined ? {} : { auto_backup_enabled: volume.auto_backup_enabled }),
      })),
      machines: machines.toSorted((a, b) => a.name.localeCompare(b.name)),
    },
  };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const there = ({ state }: Fields): boolean => !GONE.has(textOf(state));

function configOf(machine: Fields, refOf: ReadonlyMap<string, string>, note: (text: string) => void): MachineConfig {
  const place = `machine ${textOf(machine["name"])}`;
  const config = Object.fromEntries(
    Object.entries((machine["config"] ?? {}) as Fields).filter(([key, value]) => {
      if (isUnset(value)) return false;
      const carried = CARRIED[key as keyof MachineConfig] === true;
      if (!carried) note(`${place}: config.${key} is left out, there is nothing like it here`);
      return carried;
    }),
  ) as unknown as MachineConfig;
  if (config.image.startsWith("registry.fly.io/"))
    note(`${place}: its image is in Fly's registry; push it to yours (hangar registry login) and change config.image`);
  if (config.guest?.gpus || config.guest?.gpu_kind) note(`${place}: config.guest requests a GPU, which no host has`);
  const mounts = (config.mounts ?? []).filter(({ volume, path }) => {
    const known = volume === undefined || refOf.has(volume);
    if (!known) note(`${place}: the mount at ${path} is left out, its volume ${volume} is not one of the app`);
    return known;
  });
  const { mounts: _, ...rest } = config;
  return renameMounts({ ...rest, ...(mounts.length > 0 ? { mounts } : {}) }, (id) => `@${refOf.get(id)}`);
}

/** The zero values that a Go program writes for absent fields. */
const isUnset = (value: unknown): boolean =>
  value === null ||
  value === "" ||
  value === false ||
  (typeof value === "object" && Object.keys(value as object).length === 0);

/** Addresses change: one host has one address for all of its apps. */
function addressesOf(ips: readonly Fields[], note: (text: string) => void): string[] {
  const types = ips.map((one) => {
    const is_private = one["type"] === "private_v6" || textOf(one["ip"]).startsWith("fdaa:");
    return is_private ? "private_v6" : "shared_v4";
  });
  const wanted = [...new Set(types)].sort();
  if (wanted.length > 0) note(`its addresses are new ones (${wanted.join(", ")}); hangar ips list shows them`);
  return wanted;
}
