import type { Api } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts, table } from "../output.ts";
import { firstArgument, type Verb } from "../verb.ts";

type Host = Api["GET /v1/platform/hosts/:host_id"]["answer"];

const size = (used: number, all: number, unit: string): string => `${used} of ${all === 0 ? "any" : all}${unit}`;

/** What a host's state means for its machines. */
const MACHINES_THERE: Record<string, string> = {
  ok: "run",
  unknown: "those that another host may start are frozen; the others keep running, unless its box is down",
  failed: "unreachable; those that another host may start start there",
};

const stateOf = ({ state, cordoned, draining, held }: Host): string =>
  [
    state === "unknown" ? "unknown (frozen)" : state,
    ...(draining ? ["draining"] : cordoned ? ["cordoned"] : []),
    ...(held ? ["held"] : []),
  ].join(", ");

const seen = ({ last_seen }: Host): string => (last_seen === "" ? "-" : ago(last_seen, systemClock.now()));

function leaseOf({ lease_seconds, lease_ends_at }: Host): string {
  if (lease_seconds === 0) return "none: it is this process";
  return `${lease_seconds} s, ${lease_ends_at === "" ? "ended" : `ends at ${lease_ends_at} unless renewed`}`;
}

const hostsList: Verb = {
  words: "hosts list",
  summary: "List hosts, their usage, and when they last reported",
  lists: true,
  examples: ["hangar hosts list"],
  async run(context, input) {
    return await listTable(context, input, pagesOf(context.client, input, "GET /v1/platform/hosts", {}), {
      heads: ["id", "region", "zone", "state", "cpus", "memory", "last heartbeat"],
      row: (host) => [
        host.id,
        host.region,
        host.zone,
        stateOf(host),
        size(host.used_cpus, host.cpus, ""),
        size(host.used_memory_mb, host.memory_mb, " MB"),
        seen(host),
      ],
    });
  },
};

const hostsShow: Verb = {
  words: "hosts show",
  summary: "Show a host",
  arguments: [["<host>", "four hex digits, as `hangar hosts list` shows them"]],
  examples: ["hangar hosts show 0001"],
  async run({ client }, input) {
    const host = await client.call("GET /v1/platform/hosts/:host_id", { params: { host_id: firstArgument(input) } });
    return {
      data: host,
      text: facts([
        ["id", host.id],
        ["region", host.region],
        ["zone", host.zone],
        ["state", stateOf(host)],
        ["machines", MACHINES_THERE[host.state] ?? "-"],
        ["cpus", size(host.used_cpus, host.cpus, "")],
        ["memory", size(host.used_memory_mb, host.memory_mb, " MB")],
        ["driver", host.driver || "-"],
        ["builds images", host.builds || "-"],
        ["version", host.version || "-"],
        ["lease", leaseOf(host)],
        ["last heartbeat", seen(host)],
        ["address", host.address || "-"],
      ]),
    };
  },
};

const regionsList: Verb = {
  words: "regions list",
  summary: "List regions",
  examples: ["hangar regions list"],
  async run({ client }) {
    const data = await client.call("GET /v1/platform/regions", {});
    const rows = data.regions.map(({ code, name, capacity }) => [
      code,
      name,
      capacity < 0 ? "no limit" : String(capacity),
      code === data.nearest ? "nearest" : "",
    ]);
    return { data, text: table(["code", "name", "capacity", ""], rows) };
  },
};

type Action = "cordon" | "uncordon" | "fail" | "recover";

const action = (verb: Action, summary: string, said: string): Verb => ({
  words: `hosts ${verb}`,
  summary,
  arguments: [["<host>", "four hex digits"]],
  examples: [`hangar hosts ${verb} 0001`],
  async run({ client }, input) {
    const host_id = firstArgument(input);
    await client.call(`POST /v1/platform/hosts/:host_id/${verb}`, { params: { host_id } });
    return { data: { host_id, ok: true }, text: `${host_id}: ${said}` };
  },
});

export const hostsCordon = action(
  "cordon",
  "Mark a host unschedulable; its machines stay",
  "no new machines are placed here",
);
export const hostsUncordon = action(
  "uncordon",
  "Place machines on a host again",
  "new machines can be placed here again",
);
export const hostsFail = action(
  "fail",
  "Mark a host as failed: it fences itself if it still runs, and its standbys start",
  "marked as failed",
);
export const hostsRecover = action("recover", "Let a host that was marked as failed rejoin", "may come back");

const hostsDrain: Verb = {
  words: "hosts drain",
  summary: "Cordon a host and move its machines elsewhere",
  arguments: [["<host>", "four hex digits"]],
  examples: ["hangar hosts drain 0001"],
  async run({ client }, input) {
    const host_id = firstArgument(input);
    const drained = await client.call("POST /v1/platform/hosts/:host_id/drain", { params: { host_id } });
    const { moving, stuck } = drained;
    const lines = [`${host_id}: ${count(moving.length, "machine")} to move, ${stuck.length} cannot yet`];
    return {
      data: drained,
      text: [...lines, ...stuck.map(({ id, reason }) => `  ${id}  ${reason}`)].join("\n"),
      ...(stuck.length > 0 ? { exit: 1 } : {}),
    };
  },
};

const hostsRemove: Verb = {
  words: "hosts remove",
  summary: "Remove an empty host whose process has stopped and whose lease has ended",
  arguments: [["<host>", "four hex digits"]],
  examples: ["hangar hosts remove 00aa"],
  async run({ client }, input) {
    const host_id = firstArgument(input);
    await client.call("DELETE /v1/platform/hosts/:host_id", { params: { host_id } });
    return { data: { host_id, removed: true }, text: `${host_id} is forgotten` };
  },
};

const hostsJoinToken: Verb = {
  words: "hosts join-token",
  summary: "Create a token with which one new host can join, valid for an hour",
  examples: ["hangar hosts join-token"],
  async run({ client }) {
    const made = await client.call("POST /v1/platform/host_join_tokens", {});
    const text = [
      made.token,
      "",
      "On the new host, once:",
      "  hangar up --role host --database postgres://… --join-token <the line above>",
    ].join("\n");
    return { data: made, text };
  },
};

export const VERBS: readonly Verb[] = [
  hostsList,
  hostsShow,
  hostsJoinToken,
  hostsCordon,
  hostsUncordon,
  hostsDrain,
  hostsFail,
  hostsRecover,
  hostsRemove,
  regionsList,
];
