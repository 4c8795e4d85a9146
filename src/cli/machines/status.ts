/** `hangar ps` and `hangar status`: the state of machines, and the health of an app. */
import type { Machine } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { count } from "#core/words.ts";
import { collect } from "../lists.ts";
import { ago, facts, table } from "../output.ts";
import { type Context, firstArgument, type Verb } from "../verb.ts";
import { knownState, machinesList } from "./verbs.ts";

export const ps: Verb = {
  ...machinesList,
  words: "ps",
  summary: "List machines and their state: an app's, or all of an organization",
  examples: ["hangar ps", "hangar ps --app web --state started"],
};

type Listed = Awaited<ReturnType<typeof read>>["machines"][number];

/** `2 of 3 passing: http-8000 critical`. */
function checksText(checks: Machine["checks"] = {}): string {
  const all = Object.values(checks);
  if (all.length === 0) return "-";
  const failing = all.filter(({ status }) => status !== "passing").map(({ name, status }) => `${name} ${status}`);
  const passing = `${all.length - failing.length} of ${all.length} passing`;
  return failing.length === 0 ? passing : `${passing}: ${failing.join(", ")}`;
}

const imageText = ({ repository, tag }: Listed["image_ref"]): string => (tag ? `${repository}:${tag}` : repository);

const stateText = (machine: Listed): string =>
  machine.waiting ? `${knownState(machine)} (${machine.waiting})` : knownState(machine);

async function read({ client }: Context, app_name: string) {
  const params = { app_name };
  const [app, health, machines, { services }] = await Promise.all([
    client.call("GET /v1/apps/:app_name", { params }),
    client.call("GET /v1/apps/:app_name/status", { params }),
    collect(client.pages("GET /v1/apps/:app_name/machines", { params })),
    client.call("GET /v1/apps/:app_name/services", { params }),
  ]);
  return { app, status: health, machines, services, release: health.last_release ?? undefined };
}

export const status: Verb = {
  words: "status",
  summary: "Show an app: its URL, its release, its machines and their checks",
  arguments: [["<app>", "the app"]],
  completes: "apps",
  examples: ["hangar status web"],
  async run(context, input) {
    const found = await read(context, firstArgument(input));
    const { app, status: health, machines, services, release } = found;
    const now = systemClock.now();
    const problems = services.flatMap(({ problems: list }) => list);
    const about: [string, string][] = [
      ["app", app.name],
      ["state", `${health.state}: ${health.reason}`],
      ["organization", app.organization.slug],
      ["url", services.flatMap(({ urls }) => urls.slice(0, 1)).join(" ") || "none: no address, or no service"],
      ["release", release ? `${release.version} (${release.status}, ${ago(release.created_at, now)})` : "none"],
      ...problems.map((problem): [string, string] => ["problem", problem]),
    ];
    const rows = machines.map((machine) => [
      machine.name,
      stateText(machine),
      machine.region,
      checksText(machine.checks),
      imageText(machine.image_ref),
      ago(machine.updated_at, now),
    ]);
    const heads = ["machine", "state", "region", "checks", "image", "changed"];
    const list = rows.length > 0 ? table(heads, rows) : `${count(0, "machine")}; \`hangar run\` starts one`;
    return { data: found, text: `${facts(about)}\n\n${list}` };
  },
};
