import { isoTime } from "#core/clock.ts";
import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { Webhook } from "../events/webhook-store.ts";
import type { Webhooks } from "../events/webhooks.ts";
import type { RouteParts } from "./routing.ts";

const text = Type.String();
const fields = {
  id: text,
  url: text,
  app_name: Type.Optional(text),
  created_at: text,
  cursor: Type.Integer({ description: "Position in the event log up to which all events were delivered." }),
  failures: Type.Integer({ description: "Consecutive failed attempts." }),
  last_error: Type.Optional(text),
};
const WebhookResponse = Type.Object(fields);

export function webhookRoutes({ apps }: Pick<RouteParts, "apps">, webhooks: Webhooks): Row[] {
  const answer = (hook: Webhook, names: ReadonlyMap<string, string>) => ({
    id: hook.id,
    url: hook.url,
    ...(hook.app_id === null ? {} : { app_name: names.get(hook.app_id) ?? hook.app_id }),
    created_at: isoTime(hook.created_at),
    cursor: hook.position,
    failures: hook.failures,
    ...(hook.last_error === null ? {} : { last_error: hook.last_error }),
  });
  return [
    route("POST /v1/orgs/:org_slug/webhooks", {
      summary: "Create a webhook: signed machine events, retried until delivered",
      description:
        "Each request is a POST of `{events, cursor}` with `svc-timestamp` and `svc-signature: v1=<hex>`, the HMAC-SHA256 of `<timestamp>.<body>` under the secret. Any 2xx is an arrival; anything else is tried again, later and later.",
      part: "machines",
      // The platform itself sends the requests, from inside its network, so only the operator chooses where to.
      access: "create account",
      credential: true,
      body: Type.Object({
        url: Type.String({ maxLength: 2048 }),
        app_name: Type.Optional(Type.String({ description: "Only this app's events." })),
      }),
      response: {
        status: 201,
        schema: Type.Object({ ...fields, secret: Type.String({ description: "Returned only once." }) }),
      },
      errors: ["limit_reached"],
      async handle({ body, ids, ...call }) {
        const { id: org_id } = orgOf(call);
        const app = body.app_name ? await apps.getIn(org_id, body.app_name) : undefined;
        const input = { org_id, app_id: app?.id ?? null, url: body.url, token_id: call.caller.token_id };
        const { hook, secret } = await webhooks.create(input, ids);
        return { ...answer(hook, new Map(app ? [[app.id, app.name]] : [])), secret };
      },
    }),
    route("GET /v1/orgs/:org_slug/webhooks", {
      summary: "An organization's webhooks and their delivery state",
      part: "machines",
      access: "read org",
      pages: inPages("webhooks", ["text"]),
      response: { status: 200, schema: Type.Object({ webhooks: Type.Array(WebhookResponse) }) },
      async handle({ page, ...call }) {
        const { id } = orgOf(call);
        const [all, own] = await Promise.all([webhooks.list(id), apps.list(id)]);
        const names = new Map(own.map((app) => [app.id, app.name]));
        const list = page.of(all, (hook) => [hook.id]);
        return { webhooks: list.map((hook) => answer(hook, names)) };
      },
    }),
    route("DELETE /v1/orgs/:org_slug/webhooks/:webhook_id", {
      summary: "Delete a webhook",
      part: "machines",
      access: "delete account",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await webhooks.delete(orgOf(call).id, params.webhook_id),
    }),
  ];
}
