import { assert } from "#core/assert.ts";
import { appOf } from "#http/access.ts";
import { type Method, type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { BRANCH } from "./branch-names.ts";
import { GitHttp, type GitHttpParts } from "./http.ts";
import { GIT_LIMITS } from "./limits.ts";
import { type PreviewRouteParts, previewRoutes } from "./preview-routes.ts";
import { type WebhookRouteParts, webhookRoutes } from "./webhook-routes.ts";

const METHODS: readonly Method[] = ["GET", "POST"];

const Settings = Type.Object({
  url: Type.String({ description: "The address of the repository, for `git remote add`." }),
  deploy_branch: Type.String({ description: "The branch whose pushes are deployed." }),
  repository_bytes: Type.Union([Type.Integer(), Type.Null()], { description: "Null before the first push." }),
});

const Change = Type.Object({
  deploy_branch: Type.Optional(Type.String({ pattern: BRANCH, maxLength: GIT_LIMITS.ref_name_chars })),
});

interface Parts extends Omit<GitHttpParts, "apps">, PreviewRouteParts, Omit<WebhookRouteParts, "apps"> {
  /** The platform's public address. */
  base_url(): string;
}

export function gitRoutes(parts: Parts): Row[] {
  const { git, apps, base_url } = parts;
  const http = new GitHttp(parts);
  const settingsOf = async (name: string) => {
    const app = await apps.get(name);
    const { deploy_branch } = await git.settings(app.id);
    const repository_bytes = (await git.repositoryBytes(app)) ?? null;
    return { url: `${base_url()}/git/${app.name}`, deploy_branch, repository_bytes };
  };
  return [
    route("GET /v1/apps/:app_name/git", {
      summary: "How an app is deployed from Git",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Settings },
      handle: async (admitted) => await settingsOf(appOf(admitted).name),
    }),
    route("PUT /v1/apps/:app_name/git", {
      summary: "Change how an app is deployed from Git",
      part: "apps",
      access: "write app",
      body: Change,
      response: { status: 200, schema: Settings },
      errors: ["git_refused"],
      async handle({ body, ...admitted }) {
        const app = appOf(admitted);
        await git.putSettings(app.id, body);
        return await settingsOf(app.name);
      },
    }),
    ...previewRoutes(parts),
    ...webhookRoutes(parts),
    ...METHODS.map(
      (method): Row => ({
        method,
        path: "/git/*",
        summary: "Git repositories of apps, over Git's smart HTTP protocol",
        description:
          "The address is `/git/APP`. The token is the password, with any user name. Fetch takes the right to read the app, push to write it.",
        part: "apps",
        access: "any",
        scheme: "git",
        style: "git",
        response: { status: 200, type: "*/*" },
        errors: ["git_refused", "limit_reached", "storage_full"],
        handle: async () => assert(false, "Git answers by itself"),
        relay: (exchange) => http.relay(exchange),
      }),
    ),
  ];
}
