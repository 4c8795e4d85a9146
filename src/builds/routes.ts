import type { AppService } from "#apps/service.ts";
import type { Clock } from "#core/clock.ts";
import { appOf, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { StreamItem } from "#http/stream.ts";
import { BUILD_LIMITS } from "./limits.ts";
import * as schema from "./schema.ts";
import type { BuildService } from "./service.ts";
import type { BuildSite } from "./site.ts";
import type { BuildStore } from "./store.ts";
import { ENDED } from "./types.ts";

interface Parts {
  builds: BuildService;
  siteOf(org_id: string): Promise<BuildSite>;
  apps: Pick<AppService, "get">;
  store: Pick<BuildStore, "log" | "listOfOrg">;
  clock: Clock;
}

const PATH = "/v1/apps/:app_name/builds" as const;
const PIECES = 100;
const POLL_MS = 200;
const LIST_LIMIT = { name: "context_list_bytes", bytes: BUILD_LIMITS.context_list_bytes };

export function buildRoutes(parts: Parts): Row[] {
  return [...contextRoutes(parts), ...ownRoutes(parts), ...logRoutes(parts)];
}

function contextRoutes({ siteOf, apps }: Parts): Row[] {
  return [
    route(`POST ${PATH}/files/missing`, {
      summary: "List the files of a build context that have to be uploaded",
      part: "apps",
      access: "write app",
      body: schema.FileDigests,
      body_limit: LIST_LIMIT,
      response: { status: 200, schema: schema.MissingFiles },
      errors: ["build_refused"],
      async handle({ body, ...admitted }) {
        const { org_id, id } = await apps.get(appOf(admitted).name);
        return { missing: await (await siteOf(org_id)).missing({ org_id, app_id: id }, body.files) };
      },
    }),
    route(`POST ${PATH}/files`, {
      summary: "Upload files of a build context",
      description: "The body is a tar; each file in it is named by the SHA-256 of its bytes, in hex.",
      part: "apps",
      access: "write app",
      upload: "application/x-tar",
      response: { status: 200, schema: schema.ReceivedFiles },
      errors: ["build_refused", "limit_reached", "storage_full"],
      async handle({ upload, ...admitted }) {
        const { org_id, id } = await apps.get(appOf(admitted).name);
        return await (await siteOf(org_id)).receive({ org_id, app_id: id }, upload);
      },
    }),
  ];
}

function ownRoutes({ builds, siteOf, apps, store }: Parts): Row[] {
  return [
    route(`POST ${PATH}`, {
      summary: "Build an image from a Dockerfile; answers when the build is queued",
      description: "The image gets the name `builds/APP:latest`; deploy it by `digest`.",
      part: "apps",
      access: "write app",
      body: schema.CreateBuild,
      body_limit: LIST_LIMIT,
      response: { status: 201, schema: schema.BuildResponse },
      errors: ["build_refused", "build_files_missing", "limit_reached"],
      async handle({ body, caller, ids, ...admitted }) {
        const app = await apps.get(appOf(admitted).name);
        const { dockerfile = "Dockerfile", args = {}, secrets = {}, no_cache = false } = body;
        const wanted = { ...body, dockerfile, args, secrets, no_cache };
        const site = await siteOf(app.org_id);
        return schema.buildResponse(await site.create(app, caller.name, wanted, ids.hex(14)));
      },
    }),
    route(`GET ${PATH}`, {
      summary: "List an app's builds, the newest first",
      part: "apps",
      access: "read app",
      pages: inPages("builds", ["number", "text"], { size: 20 }),
      response: { status: 200, schema: schema.BuildList },
      async handle({ page, ...admitted }) {
        const found = await builds.list(appOf(admitted).id, page.request);
        return { builds: page.take(found, ({ created_at, id }) => [created_at, id]).map(schema.buildResponse) };
      },
    }),
    route("GET /v1/orgs/:org_slug/builds", {
      summary: "List an organization's builds, the newest first",
      part: "apps",
      access: "read org",
      query: schema.OrgBuildsQuery,
      pages: inPages("builds", ["number", "text"], { size: 20 }),
      response: { status: 200, schema: schema.OrgBuildList },
      async handle({ page, query, ...admitted }) {
        const found = await store.listOfOrg(orgOf(admitted).id, query.state ?? [], page.request);
        return { builds: page.take(found, ({ created_at, id }) => [created_at, id]).map(schema.orgBuildResponse) };
      },
    }),
    route(`GET ${PATH}/:build_id`, {
      summary: "Get a build",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: schema.BuildResponse },
      handle: async ({ params, ...admitted }) =>
        schema.buildResponse(await builds.get(appOf(admitted).id, params.build_id)),
    }),
    route(`POST ${PATH}/:build_id/cancel`, {
      summary: "Cancel a build; one that has ended stays as it is",
      description: "Waits until the build has ended, 10 seconds at most.",
      part: "apps",
      access: "write app",
      response: { status: 200, schema: schema.BuildResponse },
      handle: async ({ params, ...admitted }) =>
        schema.buildResponse(await builds.cancel(appOf(admitted).id, params.build_id)),
    }),
  ];
}

function logRoutes({ builds, store, clock }: Parts): Row[] {
  /** Streams the log until the build has ended; the last message is the build. */
  async function* follow(app_id: string, id: string, signal: AbortSignal): AsyncGenerator<StreamItem[]> {
    for (let after = 0; !signal.aborted; ) {
      // Read before the log: output that was written before the end is then complete.
      const build = await builds.get(app_id, id);
      const pieces = await store.log(id, after, PIECES);
      after = pieces.at(-1)?.seq ?? after;
      if (pieces.length > 0) yield pieces.map(({ seq, text }) => ({ id: String(seq), event: "log", data: { text } }));
      else if (ENDED.includes(build.state)) {
        yield [{ event: "end", data: { build: schema.buildResponse(build) } }];
        return;
      } else await clock.sleep(POLL_MS, signal).catch(() => {});
    }
  }

  return [
    route(`GET ${PATH}/:build_id/logs`, {
      summary: "The output of a build",
      description:
        "With `follow`, a server-sent event stream unless JSON is requested: `text` as it comes, then the `build` that has ended.",
      part: "apps",
      access: "read app",
      query: schema.LogQuery,
      response: { status: 200, schema: schema.LogResponse },
      async handle({ params, ...admitted }) {
        const read = (after: number) => store.log(params.build_id, after, PIECES);
        const [first] = await Promise.all([read(0), builds.get(appOf(admitted).id, params.build_id)]);
        const all = [...first];
        for (let pieces = first; pieces.length === PIECES; ) {
          pieces = await read(pieces.at(-1)?.seq ?? 0);
          all.push(...pieces);
        }
        return { log: all.map(({ text }) => text).join("") };
      },
      stream: ({ query, params, signal, ...call }) =>
        query.follow ? follow(appOf(call).id, params.build_id, signal) : undefined,
    }),
  ];
}
