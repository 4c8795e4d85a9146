import type { App } from "#apps/types.ts";
import { isoTime } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { appOf, type Caller, type Guard, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { BRANCH } from "./branch-names.ts";
import { GIT_LIMITS } from "./limits.ts";
import type { Preview, PreviewSettings } from "./preview-store.ts";
import type { Previews } from "./previews.ts";

const text = Type.String();
const { previews_per_app, preview_days, ref_name_chars } = GIT_LIMITS;

const Settings = Type.Object({
  enabled: Type.Boolean({ description: "Whether pushes of other branches than the deploy branch make preview apps." }),
  days: Type.Integer({ minimum: 1, maximum: preview_days, description: "Days without a push until one is deleted." }),
  most: Type.Integer({ minimum: 1, maximum: previews_per_app, description: "How many there may be at a time." }),
  secrets: Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.secret_name_chars }), {
    maxItems: LIMITS.secrets_per_app,
    description: "Names of the app's secrets that its previews get; no other is copied.",
  }),
});
const { enabled, days, most, secrets } = Settings.properties;
const Change = Type.Object({
  enabled: Type.Optional(enabled),
  days: Type.Optional(days),
  most: Type.Optional(most),
  secrets: Type.Optional(secrets),
});

const Shown = Type.Object({
  app_name: Type.String({ description: "The app that the preview is: its machines, releases and logs are there." }),
  branch: text,
  state: Type.Union([Type.Literal("creating"), Type.Literal("ready"), Type.Literal("deleting")], {
    description: "`creating` until its first release is complete.",
  }),
  git_commit: Type.Union([text, Type.Null()], { description: "The commit that was pushed last." }),
  urls: Type.Array(text),
  secrets: Type.Array(text, { description: "Names of the secrets that were copied." }),
  created_by: text,
  created_at: text,
  pushed_at: text,
  expires_at: Type.String({ description: "When it is deleted, unless it is pushed to before." }),
});

const Open = Type.Object({
  branch: Type.String({ pattern: BRANCH, maxLength: ref_name_chars }),
  git_commit: Type.Optional(Type.String({ pattern: "^[0-9a-f]{40}([0-9a-f]{24})?(-dirty)?$" })),
});

const Opened = Type.Object({
  ...Shown.properties,
  is_new: Type.Boolean(),
  token: Type.String({ description: "Deploys the preview, and nothing else; valid for the time of one push." }),
});

export interface PreviewTokenInput {
  caller: Caller;
  parent: App;
  org_slug: string;
  preview: Preview;
  ids: Ids;
}

export interface PreviewRouteParts {
  previews: Previews;
  guard: Pick<Guard, "admit">;
  apps: { get(name: string): Promise<App> };
  urls(app_id: string): string[];
  /** A token that deploys the preview in the caller's name. */
  previewToken(input: PreviewTokenInput): Promise<string>;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const path = "/v1/apps/:app_name/previews" as const;

export function previewRoutes(parts: PreviewRouteParts): Row[] {
  const { previews, apps, guard } = parts;
  return [
    ...listRoutes(parts),
    route(`POST ${path}`, {
      summary: "Make the preview app of a branch, or prepare it for another deploy",
      description:
        "`hangar deploy --preview` and a push of a branch begin with this. The preview gets the secrets that the settings name; its token is for the deploy. Who may write the app may do this, once its previews are switched on.",
      part: "apps",
      access: "write app",
      credential: true,
      body: Open,
      response: { status: 201, schema: Opened },
      errors: ["git_refused", "limit_reached", "conflict", "name_taken"],
      async handle({ body, caller, ids, ...admitted }) {
        const parent = await apps.get(appOf(admitted).name);
        const input = { branch: body.branch, git_commit: body.git_commit ?? null, created_by: caller.name };
        const { preview, is_new } = await previews.open(parent, input, ids);
        const org_slug = orgOf(admitted).slug;
        const token = await parts.previewToken({ caller, parent, org_slug, preview, ids });
        return { ...shown(parts, preview, await factsOf(parts, parent.id)), is_new, token };
      },
    }),
    route(`GET ${path}/settings`, {
      summary: "Whether an app has previews, and what they get",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Settings },
      handle: async (admitted) => listedSettings(await previews.settings(appOf(admitted).id)),
    }),
    route(`PUT ${path}/settings`, {
      summary: "Switch an app's previews on or off, and choose what they get",
      description: "Takes the right to create apps in the organization, because from then on pushes do.",
      part: "apps",
      access: "write app",
      body: Change,
      response: { status: 200, schema: Settings },
      errors: ["git_refused"],
      async handle({ body, caller, ...admitted }) {
        await guard.admit(caller, "create org", { org_slug: orgOf(admitted).slug });
        return listedSettings(await previews.putSettings(appOf(admitted).id, body));
      },
    }),
  ];
}

function listRoutes(parts: PreviewRouteParts): Row[] {
  const { previews } = parts;
  return [
    route(`GET ${path}`, {
      summary: "List an app's previews",
      part: "apps",
      access: "read app",
      pages: inPages("previews", ["text"]),
      response: { status: 200, schema: Type.Object({ previews: Type.Array(Shown) }) },
      async handle({ page, ...admitted }) {
        const { id } = appOf(admitted);
        const [found, facts] = await Promise.all([previews.list(id, page.request), factsOf(parts, id)]);
        return { previews: page.take(found, ({ branch }) => [branch]).map((preview) => shown(parts, preview, facts)) };
      },
    }),
    route(`GET ${path}/:preview_name`, {
      summary: "Get a preview by the name of its app",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Shown },
      async handle({ params, ...admitted }) {
        const { id } = appOf(admitted);
        const [preview, facts] = await Promise.all([previews.get(id, params.preview_name), factsOf(parts, id)]);
        return shown(parts, preview, facts);
      },
    }),
    route(`DELETE ${path}/:preview_name`, {
      summary: "Delete a preview with its machines, volumes, images and secrets",
      part: "apps",
      access: "write app",
      response: { status: 202 },
      handle: async ({ params, ...admitted }) => await previews.delete(appOf(admitted).id, params.preview_name),
    }),
  ];
}

const listedSettings = (settings: PreviewSettings) => ({ ...settings, secrets: [...settings.secrets] });

interface Facts {
  days: number;
  deployed: ReadonlySet<string>;
}

/** What is shown of an app's previews and not kept with them. */
async function factsOf({ previews }: PreviewRouteParts, parent_id: string): Promise<Facts> {
  const [{ days }, deployed] = await Promise.all([previews.settings(parent_id), previews.deployed(parent_id)]);
  return { days, deployed };
}

function shown({ urls }: PreviewRouteParts, preview: Preview, { days, deployed }: Facts) {
  const { app_name, branch, git_commit, created_by, created_at, pushed_at } = preview;
  const open = deployed.has(preview.id) ? ("ready" as const) : ("creating" as const);
  return {
    app_name,
    branch,
    state: preview.state === "open" ? open : ("deleting" as const),
    git_commit,
    urls: urls(preview.id),
    secrets: [...preview.copied],
    created_by,
    created_at: isoTime(created_at),
    pushed_at: isoTime(pushed_at),
    expires_at: isoTime(pushed_at + days * DAY_MS),
  };
}
