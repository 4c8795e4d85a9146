/** Log drains; `hangar logs drains` leads here as well. */
import { readFileSync } from "node:fs";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago } from "../output.ts";
import { firstArgument, type Input, listOption, textOption, UsageError, type Verb } from "../verb.ts";

const ORG: readonly [string, string] = ["--org <slug>", "the organization (default: personal)"];

const orgOf = (input: Input): { org_slug: string } => ({ org_slug: textOption(input, "org") ?? "personal" });

const drainsCreate: Verb = {
  words: "drains create",
  summary: "Send log lines to Loki, VictoriaLogs, an OTLP receiver or a syslog server",
  arguments: [
    ["<kind>", "loki, victorialogs, otlp or syslog"],
    ["<url>", "https://host, with the path if it is not the usual one; syslog+tls://host:6514"],
  ],
  options: [
    ORG,
    ["-a, --app <app>", "only lines of this app"],
    ["--since <time>", "send kept lines from then on too: 2d, or a time (default: only new ones)"],
    ["--header <header...>", "a header of HTTP requests: 'X-Scope-OrgID: acme'; repeated: several"],
    ["--token-stdin", "read a bearer token for HTTP requests from standard input"],
    ["--ca <file>", "authorities of a syslog server's certificate (default: the system's)"],
    ["--cert <file>", "our certificate for a syslog server"],
    ["--key <file>", "its key"],
  ],
  examples: [
    "hangar drains create loki http://127.0.0.1:9",
    "hangar drains create syslog syslog+tls://127.0.0.1:9 --since 1h",
  ],
  async run({ client, stdin, say }, input) {
    const [kind = "", url = ""] = input.args;
    const token = input.options["tokenStdin"] === true ? (await stdin()).trim() : undefined;
    if (token === "") throw new UsageError("--token-stdin: standard input has no token");
    const headers = {
      ...Object.fromEntries(listOption(input, "header").map(headerOf)),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const files = Object.fromEntries(
      (["ca", "cert", "key"] as const).flatMap((name) => {
        const path = textOption(input, name);
        return path === undefined ? [] : [[name, contentOf(name, path)]];
      }),
    ) as { ca?: string; cert?: string; key?: string };
    const app_name = textOption(input, "app");
    const since = textOption(input, "since");
    const made = await client.call("POST /v1/orgs/:org_slug/log-drains", {
      params: orgOf(input),
      body: {
        // The platform says which kinds there are.
        kind: kind as "loki",
        url,
        ...(app_name ? { app_name } : {}),
        ...(since ? { since } : {}),
        ...(Object.keys(headers).length > 0 ? { headers } : {}),
        ...files,
      },
    });
    say(`Next: hangar drains test ${made.id}`);
    return { data: made, text: made.id };
  },
};

function headerOf(text: string): [string, string] {
  const [, name = "", value = ""] = /^([^:]+):\s*(.*)$/s.exec(text) ?? [];
  if (name === "") throw new UsageError(`--header ${text}: a header is written as 'Name: value'`);
  return [name.trim(), value];
}

function contentOf(option: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    throw new UsageError(`--${option}: ${messageOf(thrown)}`);
  }
}

interface HostState {
  host_id: string;
  sent: number;
  refused: number;
  lost_gaps: number;
  lag_s: number;
  failures: number;
  last_success_at?: string | undefined;
  last_error?: string | undefined;
}

const drainsList: Verb = {
  words: "drains list",
  summary: "List log drains and how far they have got",
  options: [ORG],
  lists: true,
  examples: ["hangar drains list"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/log-drains", { params: orgOf(input) });
    const now = systemClock.now();
    return await listTable(context, input, pages, {
      heads: ["id", "kind", "app", "address", "sent", "lag", "last success", "state"],
      row: ({ id, kind, app_name, address, hosts }) => {
        const latest = hosts.flatMap(({ last_success_at }) => last_success_at ?? []).toSorted();
        return [
          id,
          kind,
          app_name ?? "all",
          address,
          String(hosts.reduce((sum, { sent }) => sum + sent, 0)),
          `${Math.round(Math.max(0, ...hosts.map(({ lag_s }) => lag_s)))} s`,
          latest.length === 0 ? "" : ago(latest.at(-1) ?? "", now),
          hosts.length === 0 ? "nothing sent yet" : hosts.flatMap(problemsOf).join("; ") || "ok",
        ];
      },
      none: "no log drains; hangar drains create makes one",
    });
  },
};

function problemsOf({ host_id, refused, lost_gaps, failures, last_error }: HostState): string[] {
  const problems = [
    failures > 0 ? `${count(failures, "failure")}: ${last_error ?? "?"}` : "",
    refused > 0 ? `${count(refused, "line")} refused${failures === 0 && last_error ? `: ${last_error}` : ""}` : "",
    lost_gaps > 0 ? `${count(lost_gaps, "gap")} where logs were deleted before they were sent` : "",
  ].filter(Boolean);
  return problems.length === 0 ? [] : [`host ${host_id}: ${problems.join(", ")}`];
}

const drainsDelete: Verb = {
  words: "drains delete",
  summary: "Delete a log drain",
  arguments: [["<drain>", "its id"]],
  options: [ORG],
  examples: ["hangar drains delete $DRAIN"],
  async run({ client }, input) {
    const drain_id = firstArgument(input);
    await client.call("DELETE /v1/orgs/:org_slug/log-drains/:drain_id", { params: { ...orgOf(input), drain_id } });
    return { data: { id: drain_id, deleted: true }, text: `deleted log drain ${drain_id}` };
  },
};

const drainsTest: Verb = {
  words: "drains test",
  summary: "Send a test line to a log drain now",
  arguments: [["<drain>", "its id"]],
  options: [ORG],
  examples: ["hangar drains test $DRAIN"],
  async run({ client }, input) {
    const params = { ...orgOf(input), drain_id: firstArgument(input) };
    const data = await client.call("POST /v1/orgs/:org_slug/log-drains/:drain_id/test", { params });
    const text = data.delivered ? `delivered in ${data.took_ms} ms` : `not delivered: ${data.error ?? "?"}`;
    return { data, text };
  },
};

export const VERBS: readonly Verb[] = [drainsCreate, drainsList, drainsDelete, drainsTest];
