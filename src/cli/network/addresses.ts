import { listTable, pagesOf } from "../lists.ts";
import { table } from "../output.ts";
import { firstArgument, textOption, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["<app>", "the app"];

export const ipsList: Verb = {
  words: "ips list",
  summary: "List an app's addresses",
  arguments: [APP],
  completes: "apps",
  lists: true,
  examples: ["hangar ips list web"],
  async run(context, input) {
    const app_name = firstArgument(input);
    const pages = pagesOf(context.client, input, "GET /v1/apps/:app_name/ip_assignments", { params: { app_name } });
    return await listTable(context, input, pages, {
      heads: ["address", "type", "region", "whose"],
      row: ({ ip, type, region, shared }) => [ip, type, region, shared ? "shared" : "own"],
      none: `no addresses: ${app_name} is closed; \`hangar ips allocate ${app_name}\` opens it`,
    });
  },
};

const TYPES = ["shared_v4", "v4", "v6", "private_v6", "egress_v4", "egress_v6", "egress_pair"] as const;

export const ipsAllocate: Verb = {
  words: "ips allocate",
  summary: "Allocate an address, which publishes the app's service ports",
  arguments: [APP],
  options: [["--type <type>", `${TYPES.join(", ")} (default: shared_v4)`]],
  completes: "apps",
  examples: ["hangar ips allocate web", "hangar ips allocate web --type v4"],
  async run({ client }, input) {
    const wanted = textOption(input, "type") ?? "shared_v4";
    const type = TYPES.find((one) => one === wanted);
    if (!type) throw new UsageError(`--type is one of ${TYPES.join(", ")}, not ${wanted}`);
    const params = { app_name: firstArgument(input) };
    const made = await client.call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type } });
    return { data: made, text: `${params.app_name} has ${made.ip} (${made.type})` };
  },
};

export const ipsRelease: Verb = {
  words: "ips release",
  summary: "Release an address; an app without one is not public",
  arguments: [APP, ["<address>", "the address"]],
  completes: "apps",
  examples: ["hangar ips release web 127.0.0.1"],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input), ip: input.args[1] ?? "" };
    await client.call("DELETE /v1/apps/:app_name/ip_assignments/:ip", { params });
    return { data: { ok: true }, text: `${params.app_name} no longer has ${params.ip}` };
  },
};

const busy = (one: { in_progress: number; soft_limit: number; hard_limit?: number | undefined }): string =>
  `${one.in_progress} of ${one.soft_limit}${one.hard_limit ? `, at most ${one.hard_limit}` : ""}`;

export const servicesList: Verb = {
  words: "services",
  summary: "List an app's published ports, their URLs, machines and load",
  arguments: [APP],
  completes: "apps",
  examples: ["hangar services web"],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input) };
    const data = await client.call("GET /v1/apps/:app_name/services", { params });
    if (!data.open) {
      return {
        data,
        text: `${params.app_name} is closed: it has no address (\`hangar ips allocate\`), or no machine with ports and handlers`,
      };
    }
    const rows = data.services.flatMap((service) =>
      service.machines.map((machine) => [
        service.urls[0] ?? "",
        service.handlers.join(",") || service.protocol,
        machine.id,
        machine.problem ?? (machine.serving ? "serving" : machine.state),
        busy(machine),
        `start ${machine.autostart ? "on" : "off"}, stop ${machine.autostop}`,
      ]),
    );
    const problems = data.services.flatMap((service) => service.problems).map((problem) => `problem: ${problem}`);
    const files = data.statics.map(
      ({ url_prefix, source, problem }) =>
        `files: ${url_prefix} from ${source}${problem ? ` (not served: ${problem})` : ""}`,
    );
    const services = table(["address", "handlers", "machine", "state", "busy", "auto"], rows);
    return { data, text: [services, ...files, ...problems].join("\n") };
  },
};
