import { isoTime } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { appOf, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { Release, RunningRelease } from "./release-store.ts";
import type { ReleaseService } from "./releases.ts";

const Status = Type.Union([Type.Literal("running"), Type.Literal("complete"), Type.Literal("failed")]);

const Listed = Type.Object({
  version: Type.Integer(),
  status: Status,
  description: Type.String({ description: "The kind of change: `deploy`, `rollback to release 3`, `scale web=2`." }),
  message: Type.String({ description: "Why it was deployed, as the deployer wrote it." }),
  git_commit: Type.Union([Type.String(), Type.Null()], {
    description: "The Git commit that was deployed; it ends in `-dirty` when files differed from it.",
  }),
  git_branch: Type.Union([Type.String(), Type.Null()]),
  failure: Type.Union([Type.String(), Type.Null()], { description: "Why the release failed." }),
  progress: Type.Union([Type.String(), Type.Null()], {
    description: "How far it is, as its deployer reported last: `2 of 5 machines: updated web-2`.",
  }),
  duration_ms: Type.Union([Type.Integer(), Type.Null()], { description: "How long it took; null while it runs." }),
  strategy: Type.String(),
  lease_ttl: Type.Union([Type.Integer(), Type.Null()], {
    description: "Seconds after which a running release is failed if its deployer does not renew it; null: never.",
  }),
  image: Type.Union([Type.String(), Type.Null()], { description: "The image's name, as it was deployed." }),
  image_digest: Type.Union([Type.String(), Type.Null()], { description: "The digest it resolved to: `sha256:…`" }),
  created_by: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
});

export const Running = Type.Object({ app_name: Type.String(), ...Listed.properties });

const Shown = Type.Object({ ...Listed.properties, definition: Type.Unknown() });

const Create = Type.Object({
  description: Type.Optional(Type.String({ maxLength: LIMITS.description_chars })),
  message: Type.Optional(
    Type.String({ maxLength: LIMITS.description_chars, description: "Why, for people who read the list of releases." }),
  ),
  git_commit: Type.Optional(Type.String({ pattern: "^[0-9a-f]{40}([0-9a-f]{24})?(-dirty)?$" })),
  git_branch: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.description_chars })),
  strategy: Type.Optional(Type.String({ maxLength: LIMITS.slug_chars })),
  definition: Type.Unknown({ description: "The definition that was deployed, for a rollback." }),
  image: Type.Optional(
    Type.String({ minLength: 1, maxLength: LIMITS.image_name_chars, description: "The image's name: `web:1`" }),
  ),
  image_digest: Type.Optional(
    Type.String({
      pattern: "^sha256:[0-9a-f]{64}$",
      description: `The digest that the name resolved to. The images of an app's newest ${LIMITS.release_images_kept} releases are kept.`,
    }),
  ),
  lease_ttl: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.release_lease_max_s,
      description: "Seconds within which you renew the release, by its status `running`. Past it: it is `failed`.",
    }),
  ),
  after: Type.Optional(Type.Integer({ minimum: 0, description: "Refused when this is not the newest version." })),
});

export function releaseRoutes(releases: ReleaseService): Row[] {
  const path = "/v1/apps/:app_name/releases" as const;
  return [
    route(`GET ${path}`, {
      summary: "List an app's releases, the newest first",
      part: "apps",
      access: "read app",
      pages: inPages("releases", ["number"], { size: 20 }),
      response: { status: 200, schema: Type.Object({ releases: Type.Array(Listed) }) },
      async handle({ page, ...admitted }) {
        const found = await releases.list(appOf(admitted).id, page.request);
        return { releases: page.take(found, ({ version }) => [version]).map(listed) };
      },
    }),
    route("GET /v1/orgs/:org_slug/deployments", {
      summary: "List an organization's releases that are being deployed, the newest first",
      part: "apps",
      access: "read org",
      pages: inPages("deployments", ["number", "text", "number"], { size: 20 }),
      response: { status: 200, schema: Type.Object({ deployments: Type.Array(Running) }) },
      async handle({ page, ...admitted }) {
        const found = await releases.running(orgOf(admitted).id, page.request);
        const keyed = page.take(found, ({ created_at, app_id, version }) => [created_at, app_id, version]);
        return { deployments: keyed.map(runningResponse) };
      },
    }),
    route(`POST ${path}`, {
      summary: "Record the start of a release",
      part: "apps",
      access: "write app",
      body: Create,
      response: { status: 201, schema: Shown },
      errors: ["conflict"],
      handle: async ({ body, caller, ...admitted }) =>
        shown(await releases.create(appOf(admitted).id, caller.name, body)),
    }),
    route(`GET ${path}/:version`, {
      summary: "Get a release with its definition",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Shown },
      handle: async ({ params, ...admitted }) => shown(await releases.get(appOf(admitted).id, whole(params.version))),
    }),
    route(`POST ${path}/:version`, {
      summary: "Record the outcome of a release, or renew its lease with the status `running`",
      part: "apps",
      access: "write app",
      body: Type.Object({
        status: Status,
        failure: Type.Optional(
          Type.String({ minLength: 1, maxLength: LIMITS.description_chars, description: "Why it failed." }),
        ),
        progress: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: LIMITS.description_chars,
            description: "How far it is, for people who watch.",
          }),
        ),
      }),
      response: { status: 200, schema: Shown },
      errors: ["conflict"],
      handle: async ({ params, body, ...admitted }) =>
        shown(
          await releases.setOutcome(appOf(admitted).id, whole(params.version), {
            status: body.status,
            failure: body.failure ?? null,
            progress: body.progress,
          }),
        ),
    }),
  ];
}

/** Anything else is a version that does not exist. */
const whole = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : 0);

function listed(release: Omit<Release, "definition">) {
  const { app_id: _, created_at, updated_at, lease_ms, ...facts } = release;
  return {
    ...facts,
    lease_ttl: lease_ms === null ? null : lease_ms / 1000,
    duration_ms: release.status === "running" ? null : updated_at - created_at,
    created_at: isoTime(created_at),
    updated_at: isoTime(updated_at),
  };
}

export const runningResponse = ({ app_name, ...release }: RunningRelease) => ({ app_name, ...listed(release) });

function shown({ definition, ...release }: Release) {
  return { ...listed(release), definition: JSON.parse(definition) as unknown };
}
