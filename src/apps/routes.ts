import type { OrgService } from "#auth/orgs.ts";
import type { Org } from "#auth/types.ts";
import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { appOf, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import * as schema from "./schema.ts";
import type { SecretService } from "./secrets.ts";
import type { AppService, Occupancy } from "./service.ts";
import type { App, Secret } from "./types.ts";

interface Parts {
  apps: AppService;
  secrets: SecretService;
  orgs: OrgService;
}

export function appRoutes(parts: Parts): Row[] {
  return [...ownRoutes(parts), ...secretRoutes(parts)];
}

function ownRoutes({ apps, orgs }: Parts): Row[] {
  const answer = async (app: App, org_slug: string) => {
    const [held, org] = await Promise.all([apps.occupancy(app.id), orgs.get(org_slug)]);
    return appResponse(app, held, org);
  };
  return [
    route("POST /v1/apps", {
      summary: "Create an app",
      part: "apps",
      access: "create org",
      body: schema.CreateApp,
      response: { status: 201, schema: schema.AppResponse },
      errors: ["name_taken", "invalid_name", "limit_reached"],
      async handle({ body, ids, ...admitted }) {
        const org = orgOf(admitted);
        const name = body.app_name ?? body.name ?? missing("body.app_name");
        return await answer(await apps.create(org.id, { name, network: body.network ?? "default" }, ids), org.slug);
      },
    }),
    route("GET /v1/apps", {
      summary: "List an organization's apps",
      part: "apps",
      access: "read org",
      query: schema.OrgQuery,
      pages: inPages("apps", ["text"]),
      response: { status: 200, schema: schema.AppList },
      async handle({ page, ...admitted }) {
        const { id, slug } = orgOf(admitted);
        const [found, org, total_apps, held] = await Promise.all([
          apps.list(id, page.request),
          orgs.get(slug),
          apps.count(id),
          apps.occupancies({ org_id: id, page: page.request }),
        ]);
        const list = page.take(found, ({ name }) => [name]);
        return { total_apps, apps: list.map((app) => appResponse(app, held(app.id), org)) };
      },
    }),
    route("GET /v1/apps/:app_name", {
      summary: "Get an app",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: schema.AppResponse },
      handle: async ({ params, ...admitted }) => await answer(await apps.get(params.app_name), orgOf(admitted).slug),
    }),
    route("DELETE /v1/apps/:app_name", {
      summary: "Delete an app and its secrets",
      part: "apps",
      access: "delete app",
      query: schema.DeleteQuery,
      response: { status: 202 },
      errors: ["app_not_empty"],
      handle: async ({ params, query }) => await apps.delete(params.app_name, query.force ?? false),
    }),
  ];
}

function secretRoutes({ secrets }: Parts): Row[] {
  return [
    route("GET /v1/apps/:app_name/secrets", {
      summary: "List an app's secrets: names and digests, never values",
      part: "apps",
      access: "read app",
      pages: inPages("secrets", ["text"]),
      response: { status: 200, schema: schema.SecretList },
      async handle({ page, ...admitted }) {
        const all = await secrets.list(appOf(admitted).id);
        return { secrets: page.of(all, ({ name }) => [name]).map(secretResponse) };
      },
    }),
    route("POST /v1/apps/:app_name/secrets", {
      summary: "Set and remove secrets, all at once",
      part: "apps",
      access: "write app",
      body: schema.ChangeSecrets,
      response: { status: 200, schema: schema.SecretChange },
      errors: ["limit_reached"],
      async handle({ body, ...admitted }) {
        const app = appOf(admitted);
        const version = await secrets.change(app.id, body.values);
        return { secrets: (await secrets.list(app.id)).map(secretResponse), version };
      },
    }),
    route("GET /v1/apps/:app_name/secrets/:secret_name", {
      summary: "Get a secret's name and digest",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: schema.SecretResponse },
      handle: async ({ params, ...admitted }) =>
        secretResponse(await secrets.get(appOf(admitted).id, params.secret_name)),
    }),
    route("POST /v1/apps/:app_name/secrets/:secret_name", {
      summary: "Set one secret",
      part: "apps",
      access: "write app",
      body: schema.SetSecret,
      response: { status: 201, schema: schema.SecretSet },
      errors: ["limit_reached"],
      async handle({ params, body, ...admitted }) {
        const app = appOf(admitted);
        const version = await secrets.change(app.id, { [params.secret_name]: body.value });
        return { ...secretResponse(await secrets.get(app.id, params.secret_name)), version };
      },
    }),
    route("DELETE /v1/apps/:app_name/secrets/:secret_name", {
      summary: "Remove a secret",
      part: "apps",
      access: "write app",
      response: { status: 200, schema: schema.SecretGone },
      async handle({ params, ...admitted }) {
        const app = appOf(admitted);
        await secrets.get(app.id, params.secret_name);
        return { version: await secrets.change(app.id, { [params.secret_name]: null }) };
      },
    }),
  ];
}

function appResponse(app: App, { machines, volumes }: Occupancy, org: Org) {
  return {
    id: app.id,
    internal_numeric_id: app.numeric_id,
    name: app.name,
    status: machines > 0 ? "deployed" : "pending",
    network: app.network,
    machine_count: machines,
    volume_count: volumes,
    organization: { name: org.name, slug: org.slug, internal_numeric_id: org.numeric_id },
    created_at: app.created_at,
  };
}

function missing(path: string): never {
  fail("invalid_request", `${path} is required`, { details: [{ path, problem: "is required" }] });
}

function secretResponse({ name, digest, created_at, updated_at }: Secret) {
  return { name, digest, created_at: isoTime(created_at), updated_at: isoTime(updated_at) };
}
