/** The changes that `hangar apply` makes: computed before the first one, so that they can be shown. */
import type { MachineConfig } from "#client/api.ts";
import { differences } from "../deploy/plan.ts";
import type { AppDocument, MachineDocument, VolumeDocument } from "./document.ts";
import type { AppNow } from "./read.ts";

export type Step =
  | { do: "create app"; app: AppDocument }
  | { do: "allocate address"; app: AppDocument; type: string }
  | { do: "create volume"; app: AppDocument; volume: VolumeDocument }
  | { do: "extend volume"; app: AppDocument; volume: VolumeDocument; from_gb: number }
  | { do: "create machine"; app: AppDocument; machine: MachineDocument }
  | { do: "update machine"; app: AppDocument; machine: MachineDocument; changes: string[] }
  | { do: "destroy machine"; app: AppDocument; name: string };

export interface Plan {
  steps: Step[];
  /** What the document requests but cannot be done. */
  problems: string[];
}

const EMPTY = { ips: [], secrets: [], volumes: [], machines: [] };

export function planApp(app: AppDocument, now: AppNow | undefined, prune: boolean): Plan {
  const there = now?.document ?? { ...app, ...EMPTY };
  const volumes = planVolumes(app, there);
  const machines = planMachines(app, there, prune);
  const known = new Set(there.secrets);
  const missing = app.secrets.filter((name) => !known.has(name));
  return {
    steps: [
      ...(now ? [] : [{ do: "create app" as const, app }]),
      ...missingOf(app.ips, there.ips).map((type) => ({ do: "allocate address" as const, app, type })),
      ...volumes.steps,
      ...machines,
    ],
    problems: [
      ...volumes.problems,
      ...missing.map(
        (name) => `${app.name}: secret ${name} is not set (hangar secrets set --app ${app.name} ${name}=-)`,
      ),
    ],
  };
}

/** The missing ones of each kind. */
function missingOf(wanted: readonly string[], there: readonly string[]): string[] {
  const left = [...there];
  return wanted.filter((one) => {
    const at = left.indexOf(one);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function planVolumes(app: AppDocument, there: AppDocument): Plan {
  const known = new Map(there.volumes.map((volume) => [volume.ref, volume]));
  const plan: Plan = { steps: [], problems: [] };
  for (const volume of app.volumes) {
    const now = known.get(volume.ref);
    const place = `${app.name}: volume ${volume.ref}`;
    if (!now) plan.steps.push({ do: "create volume", app, volume });
    else if (volume.region && now.region !== volume.region)
      plan.problems.push(`${place} is in ${now.region}, not ${volume.region}; a fork can be elsewhere`);
    else if (now.size_gb > volume.size_gb)
      plan.problems.push(`${place} has ${now.size_gb} GB, and volumes do not shrink to ${volume.size_gb}`);
    else if (now.size_gb < volume.size_gb) plan.steps.push({ do: "extend volume", app, volume, from_gb: now.size_gb });
  }
  return plan;
}

function planMachines(app: AppDocument, there: AppDocument, prune: boolean): Step[] {
  const known = new Map(there.machines.map((machine) => [machine.name, machine]));
  const wanted = new Set(app.machines.map(({ name }) => name));
  const steps = app.machines.flatMap((machine): Step[] => {
    const now = known.get(machine.name);
    if (!now) return [{ do: "create machine", app, machine }];
    const changes = configChanges(now.config, machine.config);
    return changes.length > 0 ? [{ do: "update machine", app, machine, changes }] : [];
  });
  const removed = prune ? there.machines.filter(({ name }) => !wanted.has(name)) : [];
  return [...steps, ...removed.map(({ name }): Step => ({ do: "destroy machine", app, name }))];
}

/** Fields with defaults: only given ones are compared. */
const FILLED = ["guest", "restart", "stop_config", "init", "dns"] as const;

function configChanges(before: MachineConfig, after: MachineConfig): string[] {
  const now: Record<string, unknown> = { ...before };
  const wanted = after as unknown as Record<string, unknown>;
  for (const part of FILLED) {
    const said = wanted[part] as object | undefined;
    if (said === undefined) delete now[part];
    else if (typeof now[part] === "object")
      now[part] = Object.fromEntries(Object.entries(now[part] as object).filter(([key]) => key in said));
  }
  return differences(sorted(now), sorted(wanted));
}

/** Ignores key order and empty parts. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value)
    .filter(([, part]) => part !== undefined && !isEmpty(part))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, part]) => [key, sorted(part)]));
}

const isEmpty = (part: unknown): boolean => typeof part === "object" && part !== null && Object.keys(part).length === 0;

/** A step for display. */
export function stepLines(step: Step): string[] {
  const { app } = step;
  switch (step.do) {
    case "create app":
      return [`+ app ${app.name} in ${app.org_slug}`];
    case "allocate address":
      return [`+ ${app.name}: address ${step.type}`];
    case "create volume":
      return [`+ ${app.name}: volume ${step.volume.ref}, ${step.volume.size_gb} GB`];
    case "extend volume":
      return [`~ ${app.name}: volume ${step.volume.ref}, ${step.from_gb} → ${step.volume.size_gb} GB`];
    case "create machine":
      return [`+ ${app.name}: machine ${step.machine.name}, ${step.machine.config.image}`];
    case "update machine":
      return [`~ ${app.name}: machine ${step.machine.name}`, ...step.changes.map((change) => `    ${change}`)];
    case "destroy machine":
      return [`- ${app.name}: machine ${step.name}`];
  }
}
