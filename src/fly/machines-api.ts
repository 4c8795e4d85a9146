/**
 * The Machines API for Fly's clients: the platform's own rows, each with the differences of its request and response. A
 * row that is not in the table is not served.
 */
import { fail } from "#core/errors.ts";
import type { Input } from "#http/admission.ts";
import type { Row } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { CallContext, PlatformRows, Target } from "./calls.ts";
import { NO_BUILDER } from "./graphql/mutations.ts";
import { plainName, renamed, withoutUnset } from "./requests.ts";
import {
  certificateShape,
  certificateSummary,
  changedMachineShape,
  type MachineFields,
  machineShape,
} from "./shapes.ts";

interface Difference {
  request?(given: Input, call: CallContext, rows: PlatformRows): Input | Promise<Input>;
  /** Converts the response of the platform's row to the given request. */
  answer?(value: never, given: Input): unknown;
}

const app = "/v1/apps/:app_name" as const;
const machine = `${app}/machines/:machine_id` as const;
const volume = `${app}/volumes/:volume_id` as const;
const certificate = `${app}/certificates/:hostname` as const;

/** An answer whose field `key` is a list of what `shape` takes. */
const lists =
  <Item>(key: string, shape: (item: Item) => unknown) =>
  (value: Record<string, unknown>) => ({ ...value, [key]: (value[key] as Item[]).map(shape) });

/** Waiting for `stopped` without a version means the version that the machine has now. */
async function waitRequest(given: Input, call: CallContext, rows: PlatformRows): Promise<Input> {
  const states = [given.query["state"] ?? []].flat().map(String);
  const { instance_id, version } = given.query;
  if (!states.includes("stopped") || instance_id || version) return given;
  const found = await rows.value<{ instance_id: string }>(`GET ${machine}`, { params: given.params }, call);
  return { ...given, query: { ...given.query, instance_id: found.instance_id } };
}

/** The role of apps with builder machines. There are none here. */
const BUILDER_ROLE = "remote-docker-builder";

/**
 * No app has a role, so a list of those with one is empty. flyctl deletes the first app of such a list when that is no
 * builder.
 */
const withoutRole = (list: AppList, { query }: Input) =>
  query["app_role"] ? { ...list, apps: [], total_apps: 0 } : list;

function appRequest(given: Input): Input {
  const { app_role_id } = given.body as { app_role_id?: unknown };
  if (app_role_id === BUILDER_ROLE) fail("build_refused", NO_BUILDER);
  return withoutEmptyOrg(given);
}

interface AppFields {
  name: string;
}
interface AppList {
  apps: AppFields[];
  total_apps: number;
}

/** Where CNAME records of own host names lead. */
function appTable(domain: string): Partial<Record<Target, Difference>> {
  const shape = (one: AppFields) => ({ ...one, cname_target: `${one.name}.${domain}` });
  return {
    "POST /v1/apps": { request: appRequest, answer: shape },
    "GET /v1/apps": {
      answer: (list: AppList, given) => withoutRole({ ...list, apps: list.apps.map(shape) }, given),
    },
    [`GET ${app}`]: { answer: shape },
  };
}

/** An app of another organization of the caller is the caller's own choice; an empty one is none. */
const withoutEmptyOrg = (given: Input): Input => {
  const { org_slug, ...body } = given.body as Record<string, unknown>;
  return { ...given, body: { ...body, ...(org_slug ? { org_slug } : {}) } };
};

const certificates = { answer: certificateShape };
const same: Difference = {};

const TABLE: Partial<Record<Target, Difference>> = {
  // fly-go has no such parameter: its callers ask for confirmation, and delete machines and volumes too.
  [`DELETE ${app}`]: { request: (given: Input) => ({ ...given, query: { force: true, ...given.query } }) },
  [`POST ${app}/deploy_token`]: same,
  "GET /v1/orgs/:org_slug/machines": same,
  [`GET ${app}/machines`]: { answer: (all: MachineFields[]) => all.map(machineShape) },
  [`POST ${app}/machines`]: { request: plainName, answer: changedMachineShape },
  [`GET ${machine}`]: { answer: machineShape },
  [`POST ${machine}`]: { request: plainName, answer: changedMachineShape },
  [`DELETE ${machine}`]: same,
  ...Object.fromEntries(
    ["start", "stop", "suspend", "restart", "signal", "exec", "cordon", "uncordon", "lease"].map((verb) => [
      `POST ${machine}/${verb}`,
      same,
    ]),
  ),
  [`GET ${machine}/wait`]: { request: waitRequest },
  [`GET ${machine}/lease`]: same,
  [`DELETE ${machine}/lease`]: same,
  [`GET ${machine}/metadata`]: same,
  [`GET ${machine}/metadata/:key`]: same,
  [`POST ${machine}/metadata/:key`]: same,
  [`DELETE ${machine}/metadata/:key`]: same,
  [`GET ${machine}/ps`]: same,
  [`GET ${machine}/versions`]: same,
  [`GET ${machine}/events`]: same,
  [`GET ${app}/volumes`]: same,
  [`POST ${app}/volumes`]: same,
  [`GET ${volume}`]: same,
  [`PUT ${volume}`]: same,
  [`DELETE ${volume}`]: same,
  [`PUT ${volume}/extend`]: same,
  [`GET ${volume}/snapshots`]: same,
  [`POST ${volume}/snapshots`]: same,
  [`GET ${app}/secrets`]: { request: (given: Input) => renamed(given, "version", "min_version") },
  [`POST ${app}/secrets`]: same,
  [`GET ${app}/secrets/:secret_name`]: same,
  [`POST ${app}/secrets/:secret_name`]: same,
  [`DELETE ${app}/secrets/:secret_name`]: same,
  [`GET ${app}/ip_assignments`]: same,
  [`POST ${app}/ip_assignments`]: { request: withoutEmptyOrg },
  [`DELETE ${app}/ip_assignments/:ip`]: same,
  [`GET ${app}/certificates`]: { answer: lists("certificates", certificateSummary) },
  [`POST ${app}/certificates/acme`]: certificates,
  [`POST ${app}/certificates/custom`]: certificates,
  [`GET ${certificate}`]: certificates,
  [`POST ${certificate}/check`]: certificates,
  [`DELETE ${certificate}`]: same,
  [`DELETE ${certificate}/acme`]: same,
  [`DELETE ${certificate}/custom`]: same,
  "GET /v1/platform/regions": { answer: lists("regions", (one: object) => ({ ...one, geo_region: "" })) },
  "POST /v1/tokens/authorize": same,
  "GET /v1/tokens/current": same,
};

export const machinesApi = (rows: PlatformRows, domain: string): Row[] =>
  (Object.entries({ ...appTable(domain), ...TABLE }) as [Target, Difference][]).map(([target, difference]) =>
    adapted(rows, target, difference),
  );

/**
 * The row as this listener serves it. It requires only a valid token: schemas and access rule are those of the
 * platform's row, which is called with the converted request.
 */
function adapted(rows: PlatformRows, target: Target, { request, answer }: Difference): Row {
  const { method, path, summary, part, credential, body, body_limit, response } = rows.find(target);
  return {
    method,
    path,
    summary,
    part,
    access: "any",
    response,
    ...(credential ? { credential } : {}),
    ...(body ? { body: Type.Unknown() } : {}),
    ...(body_limit ? { body_limit } : {}),
    async handle(call) {
      const given: Input = { params: call.params, query: call.query, body: call.body ?? {} };
      const translated = withoutUnset(rows.find(target), (await request?.(given, call, rows)) ?? given);
      const { value, next } = await rows.invoke(target, translated, call);
      const shaped = answer ? answer(value as never, given) : value;
      return next === undefined || Array.isArray(shaped) ? shaped : { ...(shaped as object), next_cursor: next };
    },
  };
}
