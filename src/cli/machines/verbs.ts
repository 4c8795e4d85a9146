import type { MachineConfig } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { openApp } from "../network/open.ts";
import { ago, facts } from "../output.ts";
import {
  type Context,
  filterApp,
  firstArgument,
  type Input,
  listOption,
  neededApp,
  textOption,
  UsageError,
  type Verb,
} from "../verb.ts";
import { CONFIG_OPTIONS, configOf } from "./config-options.ts";
import { APP, type Found, findMachine, MACHINE, NONCE, readMachine } from "./find.ts";
import { andWait, stateText } from "./follow.ts";

const IN_APP: readonly [string, string] = ["-a, --app <app>", "only this app's"];

export const machinesList: Verb = {
  words: "machines list",
  summary: "List machines: an app's, or all of an organization",
  options: [
    IN_APP,
    ["--org <slug>", "all of this organization (default: personal)"],
    ["--state <states...>", "created, started, stopped, suspended, failed or destroyed: only in these states"],
    ["--search <words>", "only with these words in name, id, app, region, image or address (not with --app)"],
    ["-m, --metadata <pairs...>", "only with this metadata, KEY=VALUE (with --app)"],
  ],
  lists: true,
  examples: [
    "hangar machines list",
    "hangar machines list --app web --state started --limit 20",
    'hangar machines list --search "web registry.example.com"',
  ],
  async run(context, input) {
    return await listTable(context, input, machinePages(context, input), {
      heads: ["id", "name", "app", "state", "region", "image", "changed"],
      row: (machine) => [
        machine.id,
        machine.name,
        machine.app_name,
        knownState(machine),
        machine.region,
        machine.image,
        ago(machine.updated_at, systemClock.now()),
      ],
      none: "no machines",
    });
  },
};

/** The state for display: the last known one is marked when the host sends no heartbeats. */
export const knownState = ({
  state,
  host_status = "ok",
}: {
  state: string;
  host_status?: string | undefined;
}): string => (host_status === "ok" ? state : `${host_status} (was ${state})`);

interface Listed {
  id: string;
  name: string;
  app_name: string;
  state: string;
  host_status?: string | undefined;
  region: string;
  image: string;
  updated_at: string;
}

const imageOf = (config: Record<string, unknown> | undefined): string =>
  String((config as Partial<MachineConfig> | undefined)?.image ?? "");

/** An app's machines, or an organization's. */
async function* machinePages({ client }: Context, input: Input): AsyncGenerator<Listed[]> {
  const states = listOption(input, "state");
  const state = states.length > 0 ? [...states] : undefined;
  const search = textOption(input, "search");
  const app_name = search === undefined ? filterApp(input) : undefined;
  if (search !== undefined && input.app_from === undefined && textOption(input, "app") !== undefined)
    throw new UsageError("--search searches the organization: write the app's name as one of the words, without --app");
  if (app_name === undefined) {
    const request = { params: { org_slug: textOption(input, "org") ?? "personal" }, query: { state, search } };
    for await (const page of pagesOf(client, input, "GET /v1/orgs/:org_slug/machines", request))
      yield page.map((machine) => ({ ...machine, image: imageOf(machine.config) }));
    return;
  }
  const metadata = Object.fromEntries(
    listOption(input, "metadata").map((pair) => [`metadata.${pair.split("=")[0]}`, pair.slice(pair.indexOf("=") + 1)]),
  );
  const request = { params: { app_name }, query: { state, ...metadata } };
  for await (const page of pagesOf(client, input, "GET /v1/apps/:app_name/machines", request))
    yield page.map((machine) => ({ ...machine, app_name, image: imageOf(machine.config) }));
}

export const machinesRun: Verb = {
  words: "machines run",
  summary: "Create a machine and wait until it runs",
  arguments: [
    ["<image>", "the image"],
    ["[command...]", "command to run instead of the image's, after --"],
  ],
  options: [
    ["-a, --app <app>", "the app it belongs to"],
    ["--name <name>", "its name (default: generated)"],
    ["--region <region>", "where"],
    ["--rm", "destroy it when it exits"],
    ["--skip-launch", "create it, do not start it"],
    ["--detach", "do not wait until it runs"],
    ...CONFIG_OPTIONS,
  ],
  examples: ["hangar machines run hangar/hello --app web --name worker -e MODE=fast -m role=web"],
  async run(context, input) {
    const app_name = neededApp(input);
    const config: MachineConfig = {
      image: firstArgument(input),
      ...configOf(input),
      ...(input.rest.length > 0 ? { init: { cmd: [...input.rest] } } : {}),
      ...(input.options["rm"] === true ? { auto_destroy: true, restart: { policy: "no" as const } } : {}),
    };
    const skip_launch = input.options["skipLaunch"] === true;
    const body = { name: textOption(input, "name"), region: textOption(input, "region"), skip_launch, config };
    const machine = await context.client.call("POST /v1/apps/:app_name/machines", { params: { app_name }, body });
    for (const warning of machine.warnings ?? []) context.say(`warning: ${warning}`);
    const published = (config.services ?? []).length > 0;
    const addresses = published ? { urls: await openApp(context, app_name) } : {};
    if (skip_launch || input.options["detach"] === true)
      return { data: { ...machine, ...addresses }, text: machine.id };
    const found: Found = { params: { app_name, machine_id: machine.id }, headers: {} };
    const started = await andWait(context, found, ["started"], async () => {});
    const text = `${started.id} (${started.name}) is ${stateText(started)}`;
    return { data: { ...started, ...addresses }, text };
  },
};

export const machinesShow: Verb = {
  words: "machines show",
  summary: "Show a machine",
  arguments: [MACHINE],
  options: [APP],
  completes: "machines",
  examples: ["hangar machines show $MACHINE"],
  async run(context, input) {
    const machine = await readMachine(context, await findMachine(context, input));
    const config = machine.config as unknown as MachineConfig;
    const checks = Object.entries(machine.checks).map(([name, { status }]) => `${name} ${status}`);
    const text = facts([
      ["id", machine.id],
      ["name", machine.name],
      ["state", knownState(machine)],
      ["image", config.image],
      ["region", `${machine.region} (host ${machine.host})`],
      ["private ip", machine.private_ip],
      ["version", machine.instance_id],
      ["checks", checks.join(", ") || "none"],
      ["lease", machine.lease ? `${machine.lease.owner}, ${machine.lease.description}` : "none"],
      ["created", machine.created_at],
      ["config", JSON.stringify(machine.config)],
    ]);
    return { data: machine, text };
  },
};

export const machinesUpdate: Verb = {
  words: "machines update",
  summary: "Update part of a machine's config; it restarts with the new version",
  arguments: [MACHINE],
  options: [
    APP,
    ["--image <image>", "the new image"],
    ["--skip-launch", "do not start it if it is stopped"],
    NONCE,
    ["--detach", "do not wait until it runs"],
    ...CONFIG_OPTIONS,
  ],
  completes: "machines",
  examples: ["hangar machines update $MACHINE -e MODE=slow --memory 512"],
  async run(context, input) {
    const found = await findMachine(context, input);
    const image = textOption(input, "image");
    const config = { ...configOf(input), ...(image ? { image } : {}) } as Record<string, unknown>;
    if (Object.keys(config).length === 0) throw new UsageError("name what to change, for example --image or --env");
    const { instance_id: current_version } = await readMachine(context, found);
    const skip_launch = input.options["skipLaunch"] === true;
    const update = () =>
      context.client.call("PATCH /v1/apps/:app_name/machines/:machine_id", {
        ...found,
        body: { config, current_version, skip_launch },
      });
    if (input.options["detach"] === true) {
      const machine = await update();
      return { data: machine, text: `${machine.id} becomes version ${machine.instance_id}` };
    }
    const machine = await andWait(
      context,
      found,
      skip_launch ? ["settled", "started", "stopped", "created"] : ["started"],
      update,
    );
    return { data: machine, text: `${machine.id} is ${machine.state}, version ${machine.instance_id}` };
  },
};

export const machinesWait: Verb = {
  words: "machines wait",
  summary: "Wait until a machine reaches a state, or is healthy or settled",
  arguments: [MACHINE],
  options: [
    APP,
    ["--state <states...>", "started, stopped, suspended, destroyed, failed, settled or healthy (default: started)"],
    ["--timeout <seconds>", "timeout in seconds (default: 60)"],
  ],
  completes: "machines",
  examples: ["hangar machines wait $MACHINE --state settled --timeout 30"],
  async run(context, input) {
    const found = await findMachine(context, input);
    const states = listOption(input, "state");
    const { instance_id } = await readMachine(context, found);
    const query = {
      state: states.length > 0 ? [...states] : ["started"],
      instance_id,
      timeout: textOption(input, "timeout"),
    };
    const data = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", {
      params: found.params,
      query,
    });
    return { data, text: `${found.params.machine_id} is ${data.state}` };
  },
};
