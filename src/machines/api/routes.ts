import type { Static } from "typebox";
import type { HostStatus } from "#hosts/types.ts";
import { type Admitted, appOf, orgOf } from "#http/access.ts";
import { idleFields } from "#http/field-support.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { configProblems } from "../config/config.ts";
import { refuseOtherId, refuseSecretsVersion } from "../lifecycle/rules.ts";
import { STATE_ALIASES, STATES } from "../lifecycle/states.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { OrgListFilter } from "../store.ts";
import type { Machine } from "../types.ts";
import { actionRoutes } from "./action-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { leaseRoutes } from "./lease-routes.ts";
import { logRoutes } from "./log-routes.ts";
import { metadataRoutes } from "./metadata-routes.ts";
import { actorOf, bad, type EventRouteParts, listOf, machineOf, type RouteParts } from "./routing.ts";
import { runRoutes } from "./run-routes.ts";
import * as schema from "./schema.ts";
import { terminalRoutes } from "./terminal-routes.ts";
import { tunnelRoutes } from "./tunnel-routes.ts";

export function machineRoutes(parts: EventRouteParts): Row[] {
  return [
    ...listRoutes(parts),
    ...ownRoutes(parts),
    ...updateRoutes(parts),
    ...otherRoutes(parts),
    ...actionRoutes(parts),
    ...leaseRoutes(parts),
    ...metadataRoutes(parts),
    ...eventRoutes(parts),
    ...logRoutes(parts),
    ...runRoutes(parts),
    ...terminalRoutes(parts),
    ...tunnelRoutes(parts),
  ];
}

const CHANGE_ERRORS = [
  "lease_held",
  "lease_lost",
  "version_conflict",
  "wrong_state",
  "insufficient_capacity",
  "conflict",
] as const;
const CONFIG_LIMIT = { name: "config_bytes", bytes: MACHINE_LIMITS.config_bytes };
const IMAGE_ERRORS = [
  "image_not_found",
  "image_refused",
  "image_elsewhere",
  "address_refused",
  "registry_unreachable",
] as const;

const configOf = (body: unknown): unknown => (body as { config?: unknown } | null)?.config;
const check = (body: unknown) => configProblems(configOf(body), "body.config");

function listRoutes({ machines, responses, store, hosts }: RouteParts): Row[] {
  return [
    route("GET /v1/apps/:app_name/machines", {
      summary: "List an app's machines",
      description: "`metadata.<key>=<value>` filters by metadata; several pairs must all match.",
      part: "machines",
      access: "read app",
      query: schema.ListQuery,
      pages: inPages("", ["number", "text"]),
      response: { status: 200, schema: schema.MachineList },
      async handle({ query, page, ...admitted }) {
        const states = statesOf(query.state);
        const found = await machines.list(appOf(admitted).id, {
          include_deleted: query.include_deleted ?? false,
          ...(query.region ? { region: query.region } : {}),
          ...(states.length > 0 ? { states } : {}),
          metadata: metadataFilter(query),
          page: page.request,
        });
        const list = page.take(found, ({ created_at, id }) => [created_at, id]);
        if (query.summary) return list.map((machine) => responses.summary(machine));
        return list.map((machine) => responses.machine(machine, { include_leases: query.include_leases }));
      },
    }),
    route("GET /v1/orgs/:org_slug/machines", {
      summary: "List an organization's machines in pages, the one changed longest ago first",
      part: "machines",
      access: "read org",
      query: schema.OrgListQuery,
      pages: inPages("machines", ["number", "text"], { size: 100, order: "sort" }),
      response: { status: 200, schema: schema.OrgList },
      async handle({ query, page, ...admitted }) {
        const org_id = orgOf(admitted).id;
        const { order, ...filter } = orgFilter(query, hosts);
        const after = page.after ?? timeOf(query.updated_after, order);
        const [found, counts] = await Promise.all([
          store.listOrg(org_id, { ...filter, order, page: { ...page.request, ...(after ? { after } : {}) } }),
          query.count ? countsOf(store, org_id, filter) : undefined,
        ]);
        const list = page.take(found, ({ created_at, updated_at, id }) => [
          order === "created" ? created_at : updated_at,
          id,
        ]);
        const last = list.at(-1);
        return {
          machines: list.map((machine) => responses.listed(machine)),
          ...(counts ? { counts } : {}),
          ...(last ? { last_machine_id: last.id, last_updated_at: new Date(last.updated_at).toISOString() } : {}),
          error_regions: [],
        };
      },
    }),
  ];
}

type Updating = Admitted & {
  params: { app_name: string; machine_id: string };
  body: { id?: string | undefined; min_secrets_version?: number | undefined };
};

/** Finds the machine of an update, after checking the update's preconditions. */
async function updatable(parts: RouteParts, call: Updating): Promise<Machine> {
  const machine = await machineOf(parts, call);
  refuseOtherId(machine, call.body.id);
  const { secrets_version } = await parts.apps.get(call.params.app_name);
  refuseSecretsVersion(secrets_version, call.body.min_secrets_version);
  return machine;
}

/** Response of a create or update, with warnings about request fields that have no effect. */
async function changedResponse(
  { machines, responses }: RouteParts,
  machine: Machine,
  body: { region?: string | undefined },
) {
  return responses.changed(machine, [
    ...idleFields(schema.BesideConfig, body, ""),
    ...(await machines.warnings(machine, body)),
  ]);
}

function ownRoutes(parts: RouteParts): Row[] {
  const { apps, machines, responses } = parts;
  return [
    route("POST /v1/apps/:app_name/machines", {
      summary: "Create a machine; it boots unless skip_launch",
      part: "machines",
      access: "create app",
      body: schema.CreateMachine,
      body_limit: CONFIG_LIMIT,
      check,
      response: { status: 200, schema: schema.MachineResponse },
      errors: [
        "name_taken",
        "invalid_name",
        "limit_reached",
        "insufficient_capacity",
        "volume_elsewhere",
        "volume_in_use",
        "volume_not_ready",
        "conflict",
        ...IMAGE_ERRORS,
      ],
      async handle(call) {
        const { body, params, signal } = call;
        const { id: app_id, name: app_name, org_id, network, secrets_version } = await apps.get(params.app_name);
        refuseSecretsVersion(secrets_version, body.min_secrets_version);
        const input = { ...body, name: body.name || undefined, region: body.region || undefined };
        const actor = { ...actorOf(call), signal };
        return await changedResponse(
          parts,
          await machines.create({ org_id, app_id, app_name, network }, input, actor),
          body,
        );
      },
    }),
    route("GET /v1/apps/:app_name/machines/:machine_id", {
      summary: "Get a machine; a destroyed one can be read for a week",
      part: "machines",
      access: "read machine",
      query: schema.GetQuery,
      response: { status: 200, schema: schema.MachineResponse },
      handle: async ({ query, ...call }) => responses.machine(await machineOf(parts, call), query),
    }),
  ];
}

function updateRoutes(parts: RouteParts): Row[] {
  const { machines } = parts;
  return [
    route("POST /v1/apps/:app_name/machines/:machine_id", {
      summary: "Replace a machine's whole config; it becomes a new version and boots unless skip_launch",
      description: "A running machine is restarted with the new config, with or without skip_launch.",
      part: "machines",
      access: "write machine",
      body: schema.UpdateMachine,
      body_limit: CONFIG_LIMIT,
      check,
      response: { status: 200, schema: schema.MachineResponse },
      errors: [...CHANGE_ERRORS, ...IMAGE_ERRORS],
      async handle(call) {
        const actor = { ...actorOf(call), signal: call.signal };
        return await changedResponse(
          parts,
          await machines.update(await updatable(parts, call), call.body, actor),
          call.body,
        );
      },
    }),
    route("PATCH /v1/apps/:app_name/machines/:machine_id", {
      summary: "Change part of a machine's config (JSON merge patch)",
      part: "machines",
      access: "write machine",
      body: schema.PatchMachine,
      body_limit: CONFIG_LIMIT,
      response: { status: 200, schema: schema.MachineResponse },
      errors: [...CHANGE_ERRORS, ...IMAGE_ERRORS],
      async handle(call) {
        const { config, ...rest } = call.body;
        const actor = { ...actorOf(call), signal: call.signal };
        return await changedResponse(
          parts,
          await machines.patch(await updatable(parts, call), { ...rest, patch: config }, actor),
          call.body,
        );
      },
    }),
  ];
}

function otherRoutes(parts: RouteParts): Row[] {
  const { machines, store } = parts;
  return [
    route("DELETE /v1/apps/:app_name/machines/:machine_id", {
      summary: "Destroy a machine; this cannot be undone",
      description:
        "A running machine needs `force`, which stops it by its `stop_config` first, or `kill`, which ends it at once. The answer does not wait for the end; `kill` also cuts short a stop that is under way.",
      part: "machines",
      access: "delete machine",
      query: schema.DeleteQuery,
      response: { status: 200, schema: schema.Ok },
      errors: ["lease_held", "lease_lost", "machine_running", "host_unreachable", "conflict"],
      async handle({ query, ...call }) {
        const { id } = await machineOf(parts, call);
        await machines.destroy(id, query, actorOf(call));
        return { ok: true };
      },
    }),
    route("GET /v1/apps/:app_name/machines/:machine_id/versions", {
      summary: "A machine's config versions, newest first",
      part: "machines",
      access: "read machine",
      pages: inPages("", ["number", "text"]),
      response: { status: 200, schema: schema.VersionList },
      async handle({ page, ...call }) {
        const { id } = await machineOf(parts, call);
        const all = await store.versions(id);
        const list = page.of(all, ({ created_at, instance_id }) => [created_at, instance_id], "descending");
        return list.map(({ instance_id, created_at, config }) => ({
          version: instance_id,
          created_at: new Date(created_at).toISOString(),
          user_config: config,
        }));
      },
    }),
  ];
}

function statesOf(given: readonly string[] | undefined): string[] {
  const states = listOf(given).map((name) => STATE_ALIASES[name] ?? name);
  const known: readonly string[] = STATES;
  const unknown = states.find((state) => !known.includes(state));
  if (unknown !== undefined) bad("query.state", `${JSON.stringify(unknown)} is not a state`, STATES.join(", "));
  return states;
}

const HOST_STATUSES: readonly string[] = ["ok", "unknown", "unreachable"] satisfies HostStatus[];

function hostStatusesOf(given: readonly string[]): string[] {
  const statuses = listOf(given);
  const strange = statuses.find((status) => !HOST_STATUSES.includes(status));
  if (strange !== undefined)
    bad("query.host_status", `${JSON.stringify(strange)} is not a status of a host`, HOST_STATUSES.join(", "));
  return statuses;
}

function metadataFilter(query: Record<string, unknown>): [string, string][] {
  return Object.entries(query).flatMap(([name, value]): [string, string][] => {
    if (!name.startsWith("metadata.")) return [];
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    return values.map((one) => [name.slice("metadata.".length), String(one)]);
  });
}

function orgFilter(query: Static<typeof schema.OrgListQuery>, hosts: RouteParts["hosts"]) {
  const { region, state, host_status, sort = "changed", include_deleted = false } = query;
  const states = statesOf(state);
  return {
    order: sort,
    include_deleted,
    search: wordsOf(query.search),
    ...(region ? { region } : {}),
    ...(states.length > 0 ? { states } : {}),
    ...(host_status ? { host_ids: hosts.withStatus(hostStatusesOf(host_status)) } : {}),
  };
}

/** The words of a search. */
function wordsOf(search: string | undefined): string[] {
  const words = (search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const most = MACHINE_LIMITS.search_words;
  if (words.length > most)
    bad("query.search", `has ${words.length} words (limit search_words)`, `at most ${most} words`);
  if (words.some((word) => word.includes("\0"))) bad("query.search", "has a NUL character", "other characters");
  return words;
}

/** How many machines a list has, by state. The number that is counted is bounded, so that the cost is. */
async function countsOf(store: RouteParts["store"], org_id: string, filter: Pick<OrgListFilter, "search" | "region">) {
  const most = MACHINE_LIMITS.machines_counted;
  const states = await store.countStates(org_id, filter, most + 1);
  const machines = Object.values(states).reduce((sum, count) => sum + count, 0);
  return { machines: Math.min(machines, most), states, exact: machines <= most };
}

/** Converts a timestamp to a cursor after all changes of that time. */
function timeOf(
  text: string | undefined,
  order: "changed" | "created",
): readonly [updated_at: number, id: string] | undefined {
  if (!text) return undefined;
  if (order === "created") bad("query.updated_after", "goes with sort=changed only", "sort=changed, or no sort");
  const at = Date.parse(text);
  if (Number.isNaN(at)) bad("query.updated_after", "is not a time", "such as 2024-01-31T12:00:00Z");
  return [at + 1, ""];
}
