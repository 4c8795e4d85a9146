import { firstArgument, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["<app>", "the app"];

/** An egress policy for display. */
export function egressText({ mode, allow }: { mode: string; allow: readonly string[] }): string {
  if (mode === "none") return "none: machines reach their own network only";
  if (mode === "all") return "all: machines reach everything but private and link-local addresses";
  return ["list: machines reach", ...allow.map((entry) => `  ${entry}`)].join("\n");
}

export const egressShow: Verb = {
  words: "egress show",
  summary: "Show an app's egress policy: what its machines may reach outside their private network",
  arguments: [APP],
  completes: "apps",
  examples: ["hangar egress show web"],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input) };
    const data = await client.call("GET /v1/apps/:app_name/egress", { params });
    return { data, text: egressText(data) };
  },
};

/** Converts the arguments of `egress set` and the list of `[egress]` to the API's form. */
export function egressBody(args: readonly string[]): { mode: "all" | "none" | "list"; allow: string[] } {
  const [only] = args;
  if (args.length === 1 && (only === "all" || only === "none")) return { mode: only, allow: [] };
  if (args.some((arg) => arg === "all" || arg === "none"))
    throw new UsageError(
      "all and none cannot be combined; otherwise list what machines may reach, such as api.example.com:443",
    );
  return { mode: "list", allow: [...args] };
}

export const egressSet: Verb = {
  words: "egress set",
  summary: "Set an egress policy: all, none, or a list; it applies at once",
  arguments: [APP, ["<to...>", "all, none, or addresses, ranges and DNS names with ports: api.example.com:443"]],
  completes: "apps",
  examples: [
    "hangar egress set web none",
    "hangar egress set web api.example.com:443 '*.cdn.example:443' 203.0.113.0/24:5432/tcp",
    "hangar egress set web all",
  ],
  async run({ client }, input) {
    const params = { app_name: firstArgument(input) };
    // With -a, the first entry is in the position of the app argument.
    const body = egressBody(input.rest.length > 0 ? input.rest : input.args.slice(1).flatMap((arg) => arg ?? []));
    const data = await client.call("PUT /v1/apps/:app_name/egress", { params, body });
    return { data, text: egressText(data) };
  },
};
