/** Changes the number of machines of the newest release, or their size. */
import type { MachineConfig } from "#client/api.ts";
import type { Group } from "../app-file/groups.ts";
import { megabytes } from "../app-file/units.ts";
import { type Context, type Input, neededApp, type Result, UsageError, type Verb } from "../verb.ts";
import type { Definition } from "./definition.ts";
import { APP, DRY_RUN, SCALE, told } from "./history.ts";
import { machinesOf } from "./machines.ts";
import { groupName } from "./plan.ts";
import { release } from "./release.ts";
import { TIMING_OPTIONS, timingOf } from "./timing.ts";

export const scale: Verb = {
  words: "scale",
  summary: "Set the number of machines per process group, or the size of all of them",
  arguments: [
    ["<what...>", "N for the only group, GROUP=N for others; memory 512MB, or vm shared-cpu-2x, for the size"],
  ],
  options: [APP, ...TIMING_OPTIONS, DRY_RUN],
  examples: [
    "hangar scale 2 --app web --dry-run",
    "hangar scale 2 --app web",
    "hangar scale memory 512MB --app web --dry-run",
  ],
  async run(context, input) {
    const app_name = neededApp(input);
    const definition = await newestDefinition(context, app_name);
    const words = input.rest;
    const resize = SIZES[words[0] ?? ""];
    if (!resize) return await setCounts(context, input, definition, words);
    const [what = "", value, ...more] = words;
    if (value === undefined || more.length > 0)
      throw new UsageError(`${what} takes one value, as in scale ${EXAMPLES[what]}`);
    const groups = definition.groups.map((group) => ({ ...group, config: resize(group.config, value) }));
    const resized = { ...definition, groups };
    if (input.options["dryRun"] === true) return await told(context, app_name, resized);
    const timing = timingOf(input);
    const done = await release(context, app_name, resized, { description: `${what} ${value}`, timing });
    return { data: done, text: `${app_name} runs release ${done.version}, with ${what} ${value}` };
  },
};

/** The config of a machine of another size. A rollback restores the former one, so these are releases like any other. */
const SIZES: Record<string, (config: MachineConfig, value: string) => MachineConfig> = {
  memory: (config, value) => ({ ...config, guest: { ...config.guest, memory_mb: megabytes(value) } }),
  vm: (config, size) => {
    const resized = { ...config, size };
    delete resized.guest;
    return resized;
  },
};
const EXAMPLES: Record<string, string> = { memory: "memory 512MB", vm: "vm shared-cpu-2x" };

async function newestDefinition({ client }: Context, app_name: string): Promise<Definition> {
  const { releases } = await client.call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: {} });
  const newest = releases.find(({ status }) => status === "complete");
  if (!newest) throw new UsageError(`${app_name} has no release to scale; \`hangar deploy\` makes the first one`);
  const params = { app_name, version: String(newest.version) };
  const { definition } = await client.call("GET /v1/apps/:app_name/releases/:version", { params });
  return definition as Definition;
}

async function setCounts(
  context: Context,
  input: Input,
  definition: Definition,
  words: readonly string[],
): Promise<Result> {
  const app_name = neededApp(input);
  const wanted = countsOf(words, definition.groups);
  const description = `${SCALE}${Object.entries(wanted)
    .map(([name, n]) => `${name}=${n}`)
    .join(" ")}`;
  const options = { counts: wanted, keep: true };
  if (input.options["dryRun"] === true) return await told(context, app_name, definition, options);
  const timing = timingOf(input);
  const done = await release(context, app_name, definition, { description, timing, ...options });
  const there = await machinesOf({ context, app_name });
  const counts = Map.groupBy(there, (machine) => groupName(machine) ?? "(none)");
  const text = [...counts].map(([name, machines]) => `${name}: ${machines.length}`).join("\n");
  return {
    data: { version: done.version, groups: Object.fromEntries([...counts].map(([k, v]) => [k, v.length])) },
    text,
  };
}

function countsOf(words: readonly string[], groups: readonly Group[]): Record<string, number> {
  const names = groups.map(({ name }) => name);
  return Object.fromEntries(
    words.map((word): [string, number] => {
      const [, name = names[0] ?? "", count = ""] = /^(?:([\w-]+)=)?(\d{1,4})$/.exec(word) ?? [];
      if (count === "") throw new UsageError(`${word} is not a number of machines such as 2 or worker=3`);
      if (!names.includes(name))
        throw new UsageError(`there is no process group ${name}; there is ${names.join(", ")}`);
      return [name, Number(count)];
    }),
  );
}
