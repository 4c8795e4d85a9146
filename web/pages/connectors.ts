import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { a, code, div, h, nav, p, span } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import {
  Action,
  Ago,
  block,
  card,
  empty,
  identifier,
  loading,
  pageHead,
  problem,
  sheet,
  showMessage,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes, duration, figure } from "../parts/format.ts";
import { go, to } from "../router.ts";
import { call, isReadOnly, org, session } from "../session.ts";
import { NewConnector } from "./connector-new.ts";
import { Policy, policyWords } from "./connector-policy.ts";

/** `#/connectors`, `#/connectors/<id>`. */
export function Page({ path }: PageProps): VNode {
  const [connection_id] = path;
  return connection_id ? h(ConnectorPage, { connection_id, key: connection_id }) : h(ConnectorList, {});
}

function ConnectorList(): VNode {
  const readOnly = isReadOnly(useCell(session));
  const answer = useShared(
    (signal) => call("GET /v1/oauth/connections", { query: { org_slug: org() }, signal }),
    [org()],
  );
  return div(
    pageHead("Connectors"),
    p(
      { class: "dim lead" },
      "A connector lets machines call an API through the platform, which adds the credential: the machine never has it, and a policy says which machines may call which paths.",
    ),
    when(answer, ({ connections }) =>
      connections.length === 0
        ? empty(
            "No connectors yet.",
            p("Make one below; machines reach it at"),
            block("http://localhost/v1/gateway/<provider>/<connector>/…  over the socket /.svc/api"),
          )
        : sheet(
            "Connectors",
            ["connector", "provider", "kind", "policy", "made"],
            connections.map((one) => ({
              key: one.id,
              cells: [
                a({ href: to("connectors", one.id) }, one.provider_account_name || one.id),
                one.provider,
                one.connection_type,
                policyWords(one.access_policy),
                h(Ago, { ms: Date.parse(one.inserted_at) }),
              ],
            })),
          ),
    ),
    readOnly ? null : h(NewConnector, { onMade: answer.again }),
    h(Audit, { connection_id: undefined }),
  );
}

function ConnectorPage({ connection_id }: { connection_id: string }): VNode {
  const readOnly = isReadOnly(useCell(session));
  const params = { connection_id };
  const answer = useAnswer(
    (signal) => call("GET /v1/oauth/connections/:connection_id", { params, signal }),
    [connection_id],
  );
  const { value, error } = answer;
  const above = nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("connectors") }, "Connectors"));
  if (!value) return div(above, error === undefined ? loading() : problem(error));
  const { connection } = value;
  const remove = async (): Promise<void> => {
    if (
      !(await confirmed(
        "Delete this connector?",
        "Its credential is deleted at once; machines that use it are refused.",
        "Delete it",
      ))
    )
      return;
    await call("DELETE /v1/oauth/connections/:connection_id", { params });
    go("connectors");
  };
  const probe = async (): Promise<void> => {
    const said = await call("POST /v1/oauth/connections/:connection_id/test_gateway", { params, body: {} });
    showMessage(`${said.status}: ${said.message} (${duration(said.latency_ms)})`);
  };
  return div(
    above,
    pageHead(
      connection.provider_account_name || connection.provider,
      ...(readOnly
        ? []
        : [
            h(Action, { name: "Test connector", work: probe }),
            h(Action, { name: "Delete", class: "danger", work: remove }),
          ]),
    ),
    p({ class: "lead" }, `${connection.provider}, ${connection.connection_type} `, identifier(connection.id)),
    ...(value.warnings ?? []).map((text) => p({ class: "note bad", key: text }, text)),
    h(Policy, { connection_id, policy: connection.access_policy, readOnly, onSaved: answer.again }),
    card("From inside a machine", block(connection.usage_snippet)),
    h(Usage, { connection_id }),
    h(Audit, { connection_id }),
  );
}

function Usage({ connection_id }: { connection_id: string }): VNode {
  const answer = useShared(
    (signal) => call("GET /v1/oauth/connections/:connection_id/usage", { params: { connection_id }, signal }),
    [connection_id],
  );
  return card(
    "Usage",
    when(answer, (usage) =>
      p(
        `${figure(usage.calls)} calls, ${figure(usage.denials)} refused, ${figure(usage.failures)} failed; ${bytes(usage.bytes_sent)} sent, ${bytes(usage.bytes_received)} received. `,
        usage.last_used_at ? span("Last ", h(Ago, { ms: Date.parse(usage.last_used_at) }), ".") : "Not used yet.",
      ),
    ),
  );
}

/** The audit log of connectors. */
function Audit({ connection_id }: { connection_id: string | undefined }): VNode {
  const answer = useAnswer(
    (signal) =>
      call("GET /v1/oauth/audit", {
        query: { limit: 50, org_slug: org(), ...(connection_id ? { connection_id } : {}) },
        signal,
      }),
    [connection_id, org()],
  );
  return card(
    "Audit log",
    when(answer, ({ entries }) =>
      entries.length === 0
        ? p({ class: "dim" }, "Nothing yet.")
        : sheet(
            "Audit log",
            ["when", "action", "by", "request", "rule"],
            entries.map((entry) => ({
              key: entry.id,
              cells: [
                h(Ago, { ms: Date.parse(entry.at) }),
                span(entry.action, entry.status ? span({ class: "dim" }, ` ${entry.status}`) : null),
                entry.actor,
                entry.path ? code(`${entry.method ?? ""} ${entry.path}`) : "",
                entry.rule ?? "",
              ],
            })),
          ),
    ),
  );
}
