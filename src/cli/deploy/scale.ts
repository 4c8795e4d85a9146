/** Changes the number of machines of the newest release, and their size. */
import type { MachineConfig } from "#client/api.ts";
import type { Group } from "../app-file/groups.ts";
import { megabytes } from "../app-file/units.ts";
import { neededApp, type Result, UsageError, type Verb } from "../verb.ts";
import { newestDefinition } from "./definition.ts";
import { APP, DRY_RUN, reported, SCALE } from "./history.ts";
import { machinesOf } from "./machines.ts";
import type { Place } from "./place.ts";
import { groupName } from "./plan.ts";
import { release } from "./release.ts";
import { TIMING_OPTIONS, timingOf } from "./timing.ts";

export const scale: Verb = {
  words: "scale",
  summary: "Set the number of machines per process group, and the size of all of them",
  arguments: [
    ["<what...>", "N for the only group, GROUP=N for others; memory 512MB, cpus 2, or vm shared-cpu-2x, for the size"],
  ],
  options: [APP, ...TIMING_OPTIONS, DRY_RUN],
  examples: [
    "hangar scale 2 --app web --dry-run",
    "hangar scale 2 --app web",
    "hangar scale memory 512MB --app web --dry-run",
    "hangar scale 2 memory 512MB cpus 2 --app web --dry-run",
  ],
  async run(context, input) {
    const app_name = neededApp(input);
    const newest = await newestDefinition(context, app_name);
    if (!newest) throw new UsageError(`${app_name} has no release to scale; \`hangar deploy\` makes the first one`);
    const { counts, sizes } = wantedOf(input.rest, newest.groups);
    const resize = (config: MachineConfig): MachineConfig =>
      sizes.reduce((before, [what, value]) => SIZES[what]?.(before, value) ?? before, config);
    const groups = newest.groups.map((group) => ({ ...group, config: resize(group.config) }));
    const definition = { ...newest, groups };
    // Without a new size, existing machines are not updated.
    const options = { counts, keep: sizes.length === 0 };
    if (input.options["dryRun"] === true) return await reported(context, app_name, definition, options);
    const named = Object.entries(counts).map(([name, n]) => `${name}=${n}`);
    const resized = sizes.map((size) => size.join(" "));
    const description = `${options.keep ? SCALE : ""}${[...named, ...resized].join(" ")}`;
    const done = await release(context, app_name, definition, { description, timing: timingOf(input), ...options });
    if (!options.keep)
      return {
        data: done,
        text: `${app_name} runs release ${done.version}, with ${[...named, ...resized].join(", ")}`,
      };
    return await counted({ context, app_name }, done.version);
  },
};

/** The config of a machine of another size. A rollback restores the former one, so these are releases like any other. */
const SIZES: Record<string, (config: MachineConfig, value: string) => MachineConfig> = {
  memory: (config, value) => ({ ...config, guest: { ...config.guest, memory_mb: megabytes(value) } }),
  cpus: (config, value) => ({ ...config, guest: { ...config.guest, cpus: cpusOf(value) } }),
  vm: (config, size) => {
    const resized = { ...config, size };
    delete resized.guest;
    return resized;
  },
};
const EXAMPLES: Record<string, string> = { memory: "memory 512MB", cpus: "cpus 2", vm: "vm shared-cpu-2x" };

function cpusOf(value: string): number {
  if (!/^[1-9]\d{0,2}$/.test(value)) throw new UsageError(`cpus is a whole number such as 2, not ${value}`);
  return Number(value);
}

interface Wanted {
  counts: Record<string, number>;
  sizes: [what: string, value: string][];
}

/** `web=2 memory 512MB`: numbers of machines, and sizes as two arguments. */
function wantedOf(args: readonly string[], groups: readonly Group[]): Wanted {
  const wanted: Wanted = { counts: {}, sizes: [] };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (!(arg in SIZES)) Object.assign(wanted.counts, countOf(arg, groups));
    else {
      const value = args[++at];
      if (value === undefined) throw new UsageError(`${arg} takes one value, as in scale ${EXAMPLES[arg]}`);
      wanted.sizes.push([arg, value]);
    }
  }
  return wanted;
}

function countOf(arg: string, groups: readonly Group[]): Record<string, number> {
  const names = groups.map(({ name }) => name);
  const [, name = names[0] ?? "", count = ""] = /^(?:([\w-]+)=)?(\d{1,4})$/.exec(arg) ?? [];
  if (count === "") throw new UsageError(`${arg} is not a number of machines such as 2 or worker=3`);
  if (!names.includes(name)) throw new UsageError(`there is no process group ${name}; there is ${names.join(", ")}`);
  return { [name]: Number(count) };
}

/** The machines of each group, after the change. */
async function counted(place: Pick<Place, "context" | "app_name">, version: number): Promise<Result> {
  const counts = Map.groupBy(await machinesOf(place), (machine) => groupName(machine) ?? "(none)");
  const text = [...counts].map(([name, machines]) => `${name}: ${machines.length}`).join("\n");
  return { data: { version, groups: Object.fromEntries([...counts].map(([k, v]) => [k, v.length])) }, text };
}
