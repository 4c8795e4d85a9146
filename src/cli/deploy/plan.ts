/** The plan of a deploy, computed before the first change: pure, so that `--dry-run` shows exactly it. */
import type { Machine, MachineConfig } from "#client/api.ts";
import { RUN_KEY } from "#core/run-metadata.ts";
import { GROUP_KEY, type Group } from "../app-file/groups.ts";
import { UsageError } from "../verb.ts";

export const STRATEGIES = ["rolling", "immediate", "canary", "bluegreen"] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** An existing machine. */
export type Running = Pick<Machine, "id" | "name" | "region" | "state" | "instance_id" | "image_ref"> & {
  config: MachineConfig;
};

export interface Plan {
  strategy: Strategy;
  /** Only the number of machines changes. */
  keep: boolean;
  groups: GroupPlan[];
  /** Machines of process groups that were removed from the file. */
  gone: Running[];
  /** Left by a deploy that was interrupted. */
  leftovers: Leftovers;
}

/** What a deploy that was interrupted has left. */
export interface Leftovers {
  /** Made by a release that failed, or replaced by one that is complete. */
  remove: Running[];
  /** Taken out of traffic by a release that failed. */
  restore: Running[];
}

export interface GroupPlan {
  group: Group;
  update: Running[];
  /** Machines to create: one if there is none, else up to the target number. */
  create: number;
  remove: Running[];
  /** Parallelism of a rolling deploy. */
  at_once: number;
}

interface PlanOptions {
  strategy: Strategy;
  /** Target number per group; by default the current one, or one. */
  counts: Readonly<Record<string, number>>;
  /** Machines of a group that may be unavailable: a fraction below 1, or a number. */
  max_unavailable: number;
  /** Keeps existing machines unchanged. */
  keep: boolean;
  leftovers?: Leftovers;
  /** Machines that were created without a deploy belong to the first group. */
  adopt?: boolean;
}

export const groupName = ({ config }: Running): string | undefined =>
  config.metadata?.[GROUP_KEY] ?? config.metadata?.["process_group"];

const isOneOff = ({ config }: Running): boolean => config.metadata?.[RUN_KEY] !== undefined;

/** Machines that were created without a deploy. */
export const ungrouped = (machines: readonly Running[]): Running[] =>
  machines.filter((machine) => groupName(machine) === undefined && !isOneOff(machine));

export function planOf(groups: readonly Group[], machines: readonly Running[], options: PlanOptions): Plan {
  const first = groups[0]?.name;
  const groupNow = (machine: Running): string | undefined =>
    groupName(machine) ?? (options.adopt && !isOneOff(machine) ? first : undefined);
  const { leftovers = { remove: [], restore: [] } } = options;
  const left = new Set(leftovers.remove.map(({ id }) => id));
  const managed = machines.filter((machine) => groupNow(machine) !== undefined && !left.has(machine.id));
  const known = new Set(groups.map(({ name }) => name));
  return {
    strategy: options.strategy,
    keep: options.keep,
    groups: groups.map((group) => {
      const there = managed.filter((machine) => groupNow(machine) === group.name);
      return groupPlan(group, there, options);
    }),
    leftovers,
    gone: managed.filter((machine) => !known.has(groupNow(machine) ?? "")),
  };
}

function groupPlan(group: Group, there: readonly Running[], options: PlanOptions): GroupPlan {
  // A new machine for each release, destroyed when its program exits.
  if (group.once) return { group, update: [], create: 0, remove: [...there], at_once: 1 };
  const wanted = options.counts[group.name] ?? Math.max(1, there.length);
  if (options.strategy === "bluegreen" && group.mount && !options.keep) {
    throw new UsageError(
      `process group ${group.name} has a volume, which two machines cannot share: use another strategy than bluegreen`,
    );
  }
  // Excess machines are removed newest first.
  const update = options.keep ? [] : there.slice(0, wanted);
  const { max_unavailable: away } = options;
  const at_once = Math.max(1, Math.floor(away < 1 ? update.length * away : away));
  return { group, update, create: Math.max(0, wanted - there.length), remove: there.slice(wanted), at_once };
}

/** The plan for display, one line per machine. */
export function planLines(plan: Plan): string[] {
  const name = ({ name: own, id }: Running): string => `${own} (${id})`;
  const lines = plan.groups.flatMap(({ group, update, create, remove }) => {
    const verb = plan.strategy === "bluegreen" ? "replace" : "update ";
    return [
      ...(group.once ? [`run     group ${group.name} to its end`] : []),
      ...update.map((machine) => `${verb} ${name(machine)}, group ${group.name}`),
      ...Array.from({ length: create }, () => `create  a machine, group ${group.name}${volumeWords(group)}`),
      ...remove.map((machine) => `destroy ${name(machine)}, group ${group.name} has too many`),
    ];
  });
  const { remove, restore } = plan.leftovers;
  const left = [
    ...restore.map((machine) => `uncordon ${name(machine)}, cordoned by an interrupted deploy`),
    ...remove.map((machine) => `destroy ${name(machine)}, left by an interrupted deploy`),
  ];
  return [
    ...left,
    ...lines,
    ...plan.gone.map((machine) => `destroy ${name(machine)}, group ${groupName(machine)} was removed`),
  ];
}

const volumeWords = ({ mount }: Group): string =>
  mount ? `, on a free volume ${mount.volume_name} or a new one of ${mount.size_gb} GB` : "";

/** Differences between two configs, one line each: `env.A: "1" → "2"`, `services[0].autostop: …`. */
export function differences(before: unknown, after: unknown, path = ""): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const both = [before, after];
  if (Array.isArray(before) && Array.isArray(after)) {
    const longest: readonly unknown[] = before.length > after.length ? before : after;
    return longest.flatMap((_, at) => differences(before[at], after[at], `${path}[${at}]`));
  }
  if (both.every((value) => typeof value === "object" && value !== null && !Array.isArray(value))) {
    const [one, two] = both as [Record<string, unknown>, Record<string, unknown>];
    const keys = [...new Set([...Object.keys(one), ...Object.keys(two)])].sort();
    return keys.flatMap((key) => differences(one[key], two[key], path === "" ? key : `${path}.${key}`));
  }
  const show = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));
  return [`${path}: ${show(before)} → ${show(after)}`];
}
