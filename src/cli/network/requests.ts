import { table } from "../output.ts";
import { firstArgument, type Verb } from "../verb.ts";

export const requestsList: Verb = {
  words: "requests",
  summary: "List an app's recent failed and slow requests",
  arguments: [["<app>", "the app"]],
  completes: "apps",
  examples: ["hangar requests web"],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input) };
    const data = await client.call("GET /v1/apps/:app_name/requests", { params });
    const rows = data.requests.map(({ at, method, path, status, duration_ms, machine_id, request_id, ...one }) => [
      request_id,
      at,
      `${method} ${path}`,
      `${status === 0 ? "no response" : status}${one.reason === null ? "" : ` ${one.reason}`}`,
      `${Math.round(duration_ms)} ms`,
      machine_id ?? "",
      one.trace_id ?? "",
    ]);
    if (rows.length === 0) return { data, text: `no request to ${params.app_name} failed or was slow recently` };
    return { data, text: table(["request id", "time", "request", "status", "duration", "machine", "trace"], rows) };
  },
};
