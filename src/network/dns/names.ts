/** Resolves the names of the private network from the machines that exist. */
import type { Entry } from "../directory.ts";

export const ZONE = "internal";

/** IPv6 addresses, and IPv4 addresses usable by the client. */
export type Found = { ipv6: string[]; ipv4: string[] } | { text: string } | undefined;

interface World {
  /** The host's own address in the client's network. */
  gateway: string;
  /** Running machines of the client's network. */
  running: readonly Entry[];
  /** Whether a machine is on the client's host: IPv4 addresses of other hosts are not routed. */
  isHere(machine: Entry): boolean;
  /** All machines of an app in that network, including stopped ones. */
  all(app_name: string): Promise<readonly Entry[]>;
}

/** Undefined: no such name. `name` ends in `.internal`. */
export async function findName(name: string, world: World): Promise<Found> {
  const labels = name.split(".").slice(0, -1);
  const app = labels.at(-1);
  if (app === undefined) return undefined;
  if (labels.length === 1 && app.startsWith("_")) return ownName(app, world);
  const machines = registered(world.running.filter((one) => one.app_name === app));
  const queried = labels.slice(0, -1);
  const text = await textOf(queried.join("."), machines, () => world.all(app));
  if (text !== undefined) return { text };
  if (machines.length === 0) return undefined;
  const chosen = choose(queried, machines);
  if (!chosen || chosen.length === 0) return undefined;
  const here = chosen.filter((machine) => world.isHere(machine));
  return {
    ipv6: chosen.map(({ private_ip }) => private_ip),
    ipv4: here.flatMap(({ private_ipv4 }) => private_ipv4 ?? []),
  };
}

const registered = (machines: readonly Entry[]): Entry[] =>
  machines.filter(({ config }) => config.dns?.skip_registration !== true);

/** The process group of a machine, from its metadata. */
const groupOf = ({ config }: Pick<Entry, "config">): string =>
  config.metadata?.["svc_process_group"] ??
  config.metadata?.["fly_process_group"] ??
  config.metadata?.["process_group"] ??
  "app";

/** Machines selected by a name before the app's; undefined when it is no such name. */
function choose(queried: readonly string[], machines: readonly Entry[]): readonly Entry[] | undefined {
  const [first = "", second, third] = queried;
  if (queried.length === 0 || (queried.length === 1 && first === "global")) return machines;
  if (queried.length === 1) return machines.filter(({ region }) => region === first);
  if (queried.length === 2 && second === "vm") return machines.filter(({ id }) => id === first);
  if (queried.length === 2 && second === "process") return machines.filter((one) => groupOf(one) === first);
  const top = /^top(\d{1,4})$/.exec(first)?.[1];
  if (top && queried.length === 3 && second === "nearest" && third === "of") return machines.slice(0, Number(top));
  // <value>.<key>.kv._metadata
  if (queried.length === 4 && third === "kv" && queried[3] === "_metadata") {
    return machines.filter(({ config }) => config.metadata?.[second ?? ""]?.toLowerCase() === first);
  }
  return undefined;
}

/** TXT records of `vms`, `regions` and their `all` forms. */
async function textOf(
  queried: string,
  running: readonly Entry[],
  all: () => Promise<readonly Entry[]>,
): Promise<string | undefined> {
  const of = queried.startsWith("all.") ? queried.slice(4) : queried;
  if (of !== "vms" && of !== "regions") return undefined;
  const machines = queried.startsWith("all.") ? registered(await all()) : running;
  if (of === "vms") return machines.map(({ id, region }) => `${id} ${region}`).join(",");
  return [...new Set(machines.map(({ region }) => region))].sort().join(",");
}

/** Names that belong to no app. */
function ownName(name: string, { gateway, running }: World): Found {
  if (name === "_api") return { ipv6: [gateway], ipv4: [] };
  if (name === "_apps") return { text: [...new Set(running.map(({ app_name }) => app_name))].sort().join(",") };
  if (name !== "_instances") return undefined;
  const rows = registered(running).map(
    (one) => `instance=${one.id},app=${one.app_name},ip=${one.private_ip},region=${one.region}`,
  );
  return { text: rows.join(";") };
}
