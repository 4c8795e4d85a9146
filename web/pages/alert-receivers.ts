import type { VNode } from "preact";
import { ClientError } from "#client/client.ts";
import { code, div, h, p, span } from "../html.ts";
import {
  Action,
  Ago,
  badge,
  block,
  card,
  empty,
  problem,
  sheet,
  showMessage,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { useRounds, useShared } from "../parts/controls.ts";
import { plural } from "../parts/format.ts";
import { call, org } from "../session.ts";

const EVERY_MS = 10_000;

/** Receivers, and the notifications sent to them. */
export function Receivers({ readOnly }: { readOnly: boolean }): VNode {
  return div(h(Config, { readOnly }), h(Messages, {}));
}

function Config({ readOnly }: { readOnly: boolean }): VNode {
  const params = { org_slug: org() };
  const answer = useShared((signal) => call("GET /v1/orgs/:org_slug/alerts/receivers", { params, signal }), [org()]);
  if (answer.error instanceof ClientError && answer.error.http === 404)
    return empty(
      "No notifications are sent yet.",
      p("Name receivers (webhook, Slack, e-mail, ntfy) in a file in Alertmanager's format:"),
      block("hangar alerts receivers receivers.yml"),
    );
  const test = (receiver: string) => async (): Promise<void> => {
    const { results } = await call("POST /v1/orgs/:org_slug/alerts/receivers/:receiver/test", {
      params: { ...params, receiver },
    });
    const failed = results.filter(({ problem: why }) => why !== null);
    if (failed.length === 0) showMessage(`${receiver} got a test alert.`);
    else throw new Error(failed.map(({ integration, problem: why }) => `${integration}: ${why}`).join("; "));
  };
  return card(
    "Receivers",
    answer.error !== undefined
      ? problem(answer.error)
      : when(answer, ({ receivers, content, updated_at }) =>
          div(
            sheet(
              "Receivers",
              ["receiver", "integrations", ...(readOnly ? [] : ["test"])],
              receivers.map(({ name, integrations }) => ({
                key: name,
                cells: [
                  code(name),
                  integrations.join(", ") || "nothing",
                  ...(readOnly ? [] : [h(Action, { name: "Send a test alert", work: test(name) })]),
                ],
              })),
            ),
            p(
              { class: "dim" },
              "Routes and receivers as they were set, without secrets, ",
              h(Ago, { ms: Date.parse(updated_at) }),
            ),
            block(content),
          ),
        ),
  );
}

/** The labels that a message is grouped by: the end of its key. */
function groupWords(key: string): string {
  try {
    const labels = JSON.parse(key.slice(key.lastIndexOf(":[") + 1)) as [string, string][];
    return labels.map(([name, value]) => `${name}=${value}`).join(", ") || "all";
  } catch {
    return key;
  }
}

function Messages(): VNode {
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/orgs/:org_slug/alerts/notifications", { params: { org_slug: org() }, query: {}, signal }),
    [org(), round],
  );
  return card(
    "Messages of the last seven days",
    when(answer, ({ notifications }) =>
      notifications.length === 0
        ? p({ class: "dim" }, "None yet.")
        : sheet(
            "Messages",
            ["state", "receiver", "by", "alerts", "when", "attempts"],
            notifications.map(({ id, state, receiver, integration, group, created_at, attempts, last_error }) => ({
              key: id,
              cells: [
                badge(state),
                code(receiver),
                integration,
                code(groupWords(group)),
                h(Ago, { ms: Date.parse(created_at) }),
                span(plural(attempts, "attempt"), last_error ? span({ class: "why" }, ` ${last_error}`) : null),
              ],
            })),
          ),
    ),
  );
}
