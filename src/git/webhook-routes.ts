import type { IncomingMessage } from "node:http";
import { assert } from "#core/assert.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import { appOf, type Caller, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Exchange, type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { piecesOf } from "#http/upload.ts";
import { GIT_LIMITS } from "./limits.ts";
import type { GitApp } from "./types.ts";
import type { Delivery, GitWebhook } from "./webhook-store.ts";
import type { GitWebhooks } from "./webhooks.ts";

const text = Type.String();
const fields = {
  id: text,
  url: Type.String({ description: "Where the service sends events: the address to enter there." }),
  repository: text,
  username: text,
  has_password: Type.Boolean(),
  created_by: text,
  created_at: text,
};
const { repository_url_chars, credential_chars } = GIT_LIMITS;

const Create = Type.Object({
  repository: Type.String({
    minLength: 1,
    maxLength: repository_url_chars,
    description: "What is fetched: `https://github.com/acme/shop.git`.",
  }),
  username: Type.Optional(Type.String({ maxLength: credential_chars, pattern: "^[^:\\x00-\\x1f\\x7f]*$" })),
  password: Type.Optional(
    Type.String({ maxLength: credential_chars, description: "For a private repository: a token that may read it." }),
  ),
});

const state = Type.Union([
  Type.Literal("queued"),
  Type.Literal("running"),
  Type.Literal("done"),
  Type.Literal("failed"),
]);
const DeliveryShown = Type.Object({
  id: text,
  delivery: Type.String({ description: "The id that the service gave it." }),
  event: text,
  branch: Type.Union([text, Type.Null()]),
  state,
  result: Type.String({ description: "What came of it; when it failed, the end of the deploy's output." }),
  git_commit: Type.Union([text, Type.Null()]),
  received_at: text,
  ended_at: Type.Union([text, Type.Null()]),
});

export interface WebhookRouteParts {
  webhooks: GitWebhooks;
  clock: Clock;
  base_url(): string;
  /** A token that deploys this app in the caller's name, and falls with the caller's. */
  webhookToken(caller: Caller, app: GitApp, org_slug: string, ids: Ids): Promise<{ text: string; id: string }>;
  apps: { get(name: string): Promise<GitApp> };
}

const path = "/v1/apps/:app_name/git/webhooks" as const;

export function webhookRoutes(parts: WebhookRouteParts): Row[] {
  const { webhooks, base_url } = parts;
  const shown = (app_name: string, { id, repository, username, password, created_by, created_at }: GitWebhook) => ({
    id,
    url: `${base_url()}/v1/apps/${app_name}/git/webhooks/${id}`,
    repository,
    username,
    has_password: password !== null,
    created_by,
    created_at: isoTime(created_at),
  });
  return [
    route(`POST ${path}`, {
      summary: "Deploy what is pushed to a repository of GitHub, Gitea or Forgejo",
      part: "apps",
      access: "write app",
      credential: true,
      body: Create,
      response: {
        status: 201,
        schema: Type.Object({
          ...fields,
          secret: Type.String({ description: "To be entered there. Shown only once." }),
        }),
      },
      errors: ["limit_reached", "git_refused", "address_refused"],
      async handle({ body, caller, ids, ...admitted }) {
        const app = await parts.apps.get(appOf(admitted).name);
        const token = await parts.webhookToken(caller, app, orgOf(admitted).slug, ids);
        const { webhook, secret } = await webhooks.create({ ...body, app, created_by: caller.name }, token, ids);
        return { ...shown(app.name, webhook), secret };
      },
    }),
    route(`GET ${path}`, {
      summary: "List the repositories elsewhere whose pushes are deployed",
      part: "apps",
      access: "read app",
      pages: inPages("webhooks", ["text"]),
      response: { status: 200, schema: Type.Object({ webhooks: Type.Array(Type.Object(fields)) }) },
      async handle({ page, ...admitted }) {
        const { id, name } = appOf(admitted);
        const list = page.of(await webhooks.list(id), (webhook) => [webhook.id]);
        return { webhooks: list.map((webhook) => shown(name, webhook)) };
      },
    }),
    route(`DELETE ${path}/:git_webhook_id`, {
      summary: "Disconnect a Git repository: its pushes are no longer deployed",
      part: "apps",
      access: "write app",
      response: { status: 204 },
      handle: async ({ params, ...admitted }) =>
        await webhooks.delete({ id: appOf(admitted).id, org_id: orgOf(admitted).id }, params.git_webhook_id),
    }),
    route(`GET ${path}/:git_webhook_id/deliveries`, {
      summary: "List the events that came, and what became of each",
      part: "apps",
      access: "read app",
      pages: inPages("deliveries", ["number", "text"]),
      response: { status: 200, schema: Type.Object({ deliveries: Type.Array(DeliveryShown) }) },
      async handle({ params, page, ...admitted }) {
        const all = await webhooks.deliveries(appOf(admitted).id, params.git_webhook_id);
        const list = page.of(all, ({ received_at, id }) => [received_at, id], "descending");
        return { deliveries: list.map(deliveryShown) };
      },
    }),
    eventRoute(parts),
  ];
}

/** Its signature is the right to call it. */
const eventRoute = ({ webhooks, clock }: WebhookRouteParts): Row => ({
  method: "POST",
  path: `${path}/:git_webhook_id`,
  summary: "Take an event of GitHub, Gitea or Forgejo",
  description:
    "The body is signed with the webhook's secret: `X-Hub-Signature-256`, or `X-Gitea-Signature`. Answers at once; what came of an event is in the list of deliveries.",
  part: "apps",
  access: "open",
  response: { status: 202, schema: Type.Object({ result: text, why: Type.Optional(text) }) },
  errors: ["unauthorized", "not_found", "payload_too_large", "malformed_json", "overloaded"],
  handle: async () => assert(false, "events are read as they come"),
  relay: async ({ request, response, request_id, takeOver }: Exchange) => {
    const [app_name = "", id = ""] = idsIn(request.url ?? "");
    const webhook = await webhooks.find(app_name, id);
    const body = await bodyOf(request, clock);
    const answer = await webhooks.receive(webhook, request.headers, body, randomIds(clock));
    takeOver();
    response
      .writeHead(answer.result === "queued" ? 202 : 200, {
        "content-type": "application/json; charset=utf-8",
        "cache-control": "no-store",
        "svc-request-id": request_id,
      })
      .end(JSON.stringify(answer));
  },
});

const EVENT_PATH = /^\/v1\/apps\/([^/?]+)\/git\/webhooks\/([^/?]+)/;
const idsIn = (url: string): string[] => EVENT_PATH.exec(url)?.slice(1) ?? [];

async function bodyOf(request: IncomingMessage, clock: Clock): Promise<Buffer> {
  const { event_bytes, event_ms } = GIT_LIMITS;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(request, clock, AbortSignal.timeout(event_ms))) {
    bytes += piece.length;
    if (bytes > event_bytes) fail("payload_too_large", `an event has at most ${event_bytes} bytes (limit event_bytes)`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function deliveryShown({ id, delivery, event, branch, state, result, git_commit, received_at, ended_at }: Delivery) {
  const facts = { id, delivery, event, branch, state, result, git_commit };
  return {
    ...facts,
    received_at: isoTime(received_at),
    ended_at: ended_at === null ? null : isoTime(ended_at),
  };
}
