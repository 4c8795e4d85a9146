/** The REST routes of Fly's API host: organizations, releases, logs, and errors for unsupported ones. */
import { fail } from "#core/errors.ts";
import type { Access } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { CallContext, PlatformRows } from "./calls.ts";
import type { ReleaseFields } from "./graphql/details.ts";
import { NO_BUILDER } from "./graphql/mutations.ts";
import type { OrgFields } from "./graphql/nodes.ts";
import { logRoute } from "./logs.ts";

const any = Type.Unknown();
const text = Type.String();
const open = { part: "platform", access: "any" satisfies Access } as const;

export const apiHost = (rows: PlatformRows): Row[] => [
  ...orgRoutes(rows),
  ...releaseRoutes(rows),
  logRoute(rows),
  ...refusals(),
];

const orgShape = ({ slug, name, internal_numeric_id }: OrgFields) => ({
  id: slug,
  internal_numeric_id,
  slug,
  raw_slug: slug,
  name,
  paid_plan: true,
  personal: slug === "personal",
  billing_status: "CURRENT",
  provisions_beta_extensions: false,
  billable: true,
  remote_builder_image: "",
});

function orgRoutes(rows: PlatformRows): Row[] {
  return [
    route("GET /api/v1/organizations", {
      ...open,
      summary: "Organizations that the caller sees",
      response: { status: 200, schema: any },
      async handle(call) {
        const { organizations } = await rows.value<{ organizations: OrgFields[] }>("GET /v1/orgs", {}, call);
        return { organizations: organizations.map(orgShape) };
      },
    }),
    route("GET /api/v1/organizations/:slug", {
      ...open,
      summary: "One organization",
      response: { status: 200, schema: any },
      async handle(call) {
        const params = { org_slug: call.params.slug };
        return { organization: orgShape(await rows.value<OrgFields>("GET /v1/orgs/:org_slug", { params }, call)) };
      },
    }),
  ];
}

/** A release's id is its app and its version: `web.3`. */
const releaseShape = (app_name: string, release: ReleaseFields) => ({
  id: `${app_name}.${release.version}`,
  version: release.version,
  stable: release.status === "complete",
  in_progress: release.status === "running",
  status: release.status,
  strategy: release.strategy.toUpperCase(),
  user: release.created_by,
  created_at: release.created_at,
  image_ref: release.image ?? "",
});

/** Fly's names for the results of a release. */
const OUTCOMES: Record<string, string> = {
  complete: "complete",
  failed: "failed",
  interrupted: "failed",
  running: "running",
};

function releaseRoutes(rows: PlatformRows): Row[] {
  const listed = async (app_name: string, limit: number, call: CallContext) => {
    const given = { params: { app_name }, query: { limit } };
    const { releases } = await rows.value<{ releases: ReleaseFields[] }>(
      "GET /v1/apps/:app_name/releases",
      given,
      call,
    );
    return releases.map((release) => releaseShape(app_name, release));
  };
  return [
    route("GET /api/v1/apps/:app_name/releases", {
      ...open,
      summary: "Releases of an app, the newest first",
      query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })) }),
      response: { status: 200, schema: any },
      handle: async (call) => ({ releases: await listed(call.params.app_name, call.query.limit ?? 25, call) }),
    }),
    route("GET /api/v1/apps/:app_name/releases/current", {
      ...open,
      summary: "The newest release of an app; 404 when there is none",
      response: { status: 200, schema: any },
      async handle(call) {
        const [newest] = await listed(call.params.app_name, 1, call);
        return newest ?? fail("not_found", "the app has no release");
      },
    }),
    route("GET /api/v1/releases/all_current", {
      ...open,
      summary: "When each app was released last",
      response: { status: 200, schema: any },
      async handle(call) {
        const { organizations } = await rows.value<{ organizations: OrgFields[] }>("GET /v1/orgs", {}, call);
        const times: Record<string, string> = {};
        for (const { slug: org_slug } of organizations) {
          const { apps } = await rows.value<{ apps: { name: string }[] }>(
            "GET /v1/apps",
            { query: { org_slug } },
            call,
          );
          for (const { name } of apps) {
            const [newest] = await listed(name, 1, call);
            if (newest) times[name] = newest.created_at;
          }
        }
        return times;
      },
    }),
    route("POST /api/v1/releases", {
      ...open,
      summary: "Record the start of a release",
      body: Type.Object({ app_name: text, image: text, strategy: Type.Optional(text), definition: Type.Optional(any) }),
      response: { status: 201, schema: any },
      async handle(call) {
        const { app_name, image, strategy = "", definition = {} } = call.body;
        const body = { image, strategy: strategy.toLowerCase(), definition: definition ?? {}, description: "deploy" };
        const given = { params: { app_name }, body };
        const made = await rows.value<ReleaseFields>("POST /v1/apps/:app_name/releases", given, call);
        return { release: releaseShape(app_name, made) };
      },
    }),
    route("PATCH /api/v1/releases/:release_id", {
      ...open,
      summary: "Record the outcome of a release",
      body: Type.Object({ status: text, metadata: Type.Optional(any) }),
      response: { status: 200, schema: any },
      async handle(call) {
        const [app_name = "", version = ""] = call.params.release_id.split(".");
        const body = { status: OUTCOMES[call.body.status] ?? "running" };
        const given = { params: { app_name, version }, body };
        const made = await rows.value<ReleaseFields>("POST /v1/apps/:app_name/releases/:version", given, call);
        return { release: releaseShape(app_name, made) };
      },
    }),
  ];
}

/** Errors of unsupported routes, with an alternative. */
const REFUSED = {
  "POST /api/v1/builds/depot_builder": NO_BUILDER,
  "POST /api/v1/organizations/:slug/builders": NO_BUILDER,
  "POST /api/v1/cli_sessions":
    "there are no accounts to log in to: set FLY_API_TOKEN to a token of the platform (`hangar auth token`, `hangar tokens create`)",
} as const;

function refusals(): Row[] {
  return [
    ...(Object.entries(REFUSED) as [keyof typeof REFUSED, string][]).map(([target, message]) =>
      route(target, {
        part: "platform",
        access: target.endsWith("cli_sessions") ? "open" : "any",
        summary: "Refused, with what to do instead",
        body: any,
        response: { status: 200, schema: any },
        errors: ["build_refused"],
        handle: async (): Promise<never> => fail("build_refused", message),
      }),
    ),
    // flyctl reports each build; the platform does not need reports of local ones.
    ...(["POST /api/v1/builds", "POST /api/v1/builds/finish"] as const).map((target) =>
      route(target, {
        ...open,
        summary: "Accepted without effect: the client builds its image itself",
        body: any,
        response: { status: 200, schema: any },
        handle: async () => ({ id: 0, status: "completed", wallclock_time_ms: 0 }),
      }),
    ),
  ];
}
