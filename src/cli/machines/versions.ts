import { table } from "../output.ts";
import type { Verb } from "../verb.ts";
import { APP, findMachine, MACHINE } from "./find.ts";

export const machinesVersions: Verb = {
  words: "machines versions",
  summary: "List config versions of a machine, newest first; --json prints the full configs",
  arguments: [MACHINE],
  options: [APP],
  completes: "machines",
  examples: ["hangar machines versions $MACHINE"],
  async run(context, input) {
    const { params } = await findMachine(context, input);
    const versions = await context.client.call("GET /v1/apps/:app_name/machines/:machine_id/versions", { params });
    const rows = versions.map(({ version, created_at, user_config }) => [
      version,
      created_at,
      typeof user_config["image"] === "string" ? user_config["image"] : "",
    ]);
    return { data: versions, text: table(["version", "made", "image"], rows) };
  },
};

export const machinesSignal: Verb = {
  words: "machines signal",
  summary: "Send a signal to a machine's main process",
  arguments: [MACHINE, ["<signal>", "SIGHUP, SIGUSR1, …"]],
  options: [APP],
  completes: "machines",
  examples: ["hangar machines signal $MACHINE SIGHUP"],
  async run(context, input) {
    const { params, headers } = await findMachine(context, input);
    const signal = input.args[1] ?? "";
    await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/signal", {
      params,
      headers,
      body: { signal },
    });
    return { data: { ...params, signal, ok: true }, text: `sent ${signal}` };
  },
};
