import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { READ_ONLY } from "../allowed.ts";
import { useCell } from "../cell.ts";
import { code, div, form, h, input, option, p, select, span } from "../html.ts";
import { Action, Ago, badge, block, card, empty, Field, sheet, showMessage, when } from "../parts/basics.ts";
import { textField, useRounds, useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes, duration, plural } from "../parts/format.ts";
import { call, isReadOnly, org, session } from "../session.ts";

const EVERY_MS = 5000;
const KINDS = ["loki", "victorialogs", "otlp", "syslog"] as const;
type Kind = (typeof KINDS)[number];

const EXAMPLES: Record<Kind, string> = {
  loki: "https://loki.example",
  victorialogs: "https://logs.example",
  otlp: "https://otel.example",
  syslog: "syslog+tls://logs.example:6514",
};

/** Where the organization's log lines are sent, and how far each host has got. */
export function LogDrains(): VNode {
  const readOnly = isReadOnly(useCell(session));
  const params = { org_slug: org() };
  const round = useRounds(EVERY_MS);
  const answer = useShared(
    (signal) => call("GET /v1/orgs/:org_slug/log-drains", { params, query: {}, signal }),
    [org(), round],
  );
  const test = (drain_id: string, address: string) => async (): Promise<void> => {
    const { delivered, error, took_ms } = await call("POST /v1/orgs/:org_slug/log-drains/:drain_id/test", {
      params: { ...params, drain_id },
    });
    if (!delivered) throw new Error(`${address}: ${error ?? "it was refused"}`);
    showMessage(`${address} took a test line in ${took_ms} ms.`);
  };
  const remove = (drain_id: string, address: string) => async (): Promise<void> => {
    const sure = await confirmed(
      `Delete the log drain to ${address}?`,
      "Lines that were not sent yet are not sent any more. A new drain can send kept lines again.",
      "Delete it",
    );
    if (!sure) return;
    await call("DELETE /v1/orgs/:org_slug/log-drains/:drain_id", { params: { ...params, drain_id } });
    showMessage(`The log drain to ${address} is deleted.`);
    answer.again();
  };
  return card(
    "Log drains",
    p({ class: "dim" }, `Log lines of ${org()} are sent to other log servers, each at least once and in order.`),
    h(NewDrain, { readOnly, onMade: answer.again }),
    when(answer, ({ log_drains }) =>
      log_drains.length === 0
        ? empty("None yet.")
        : sheet(
            "Log drains",
            ["to", "of", "state", "sent", "waits", "problems", ...(readOnly ? [] : ["actions"])],
            log_drains.map((drain) => ({
              key: drain.id,
              cells: [
                span(code(drain.address), span({ class: "tag" }, drain.kind)),
                drain.app_name ?? "all apps",
                badge(stateOf(drain.hosts)),
                sentWords(drain.hosts),
                lagWords(drain.hosts),
                problems(drain.hosts),
                ...(readOnly
                  ? []
                  : [
                      div(
                        { class: "actions" },
                        h(Action, { name: "Send a test line", work: test(drain.id, drain.address) }),
                        h(Action, { name: "Delete", class: "danger", work: remove(drain.id, drain.address) }),
                      ),
                    ]),
              ],
            })),
          ),
    ),
    p({ class: "dim" }, "Certificates, headers and lines of the past are options of the command:"),
    block("hangar drains create --help"),
  );
}

interface HostState {
  host_id: string;
  sent: number;
  refused: number;
  lost_gaps: number;
  lost_bytes: number;
  lag_s: number;
  failures: number;
  last_success_at?: string | undefined;
  last_error?: string | undefined;
}

function stateOf(hosts: readonly HostState[]): string {
  if (hosts.length === 0) return "created";
  return hosts.some(({ failures }) => failures > 0) ? "failed" : "ok";
}

function sentWords(hosts: readonly HostState[]): VNode {
  const sent = hosts.reduce((sum, host) => sum + host.sent, 0);
  const last = Math.max(
    ...hosts.map(({ last_success_at }) => Date.parse(last_success_at ?? "")).filter(Number.isFinite),
  );
  return Number.isFinite(last)
    ? span(`${plural(sent, "line")}, `, h(Ago, { ms: last }))
    : span({ class: "dim" }, "nothing yet");
}

function lagWords(hosts: readonly HostState[]): string {
  const lag = Math.max(0, ...hosts.map(({ lag_s }) => lag_s));
  return lag === 0 ? "–" : duration(lag * 1000);
}

function problems(hosts: readonly HostState[]): VNode {
  const many = hosts.length > 1;
  const words = hosts.flatMap((host) => {
    const own = [
      host.last_error,
      host.refused > 0 ? `${plural(host.refused, "line")} refused` : undefined,
      host.lost_gaps > 0
        ? `${plural(host.lost_gaps, "gap")}, ${bytes(host.lost_bytes)} lost before they were sent`
        : undefined,
    ].filter((each) => each !== undefined);
    return own.map((text) => (many ? `${host.host_id}: ${text}` : text));
  });
  return words.length === 0
    ? span({ class: "dim" }, "none")
    : div(...words.map((text) => div({ key: text, class: "why" }, text)));
}

function NewDrain({ readOnly, onMade }: { readOnly: boolean; onMade: () => void }): VNode {
  const [kind, setKind] = useState<Kind>("loki");
  const [url, setUrl] = useState("");
  const [app_name, setApp] = useState("");
  const [authorization, setAuthorization] = useState("");
  const create = async (): Promise<void> => {
    const headers = authorization && kind !== "syslog" ? { headers: { Authorization: authorization } } : {};
    const { address } = await call("POST /v1/orgs/:org_slug/log-drains", {
      params: { org_slug: org() },
      body: { kind, url: url.trim(), ...(app_name.trim() ? { app_name: app_name.trim() } : {}), ...headers },
    });
    showMessage(`New lines are sent to ${address}.`);
    setUrl("");
    setAuthorization("");
    onMade();
  };
  return form(
    { class: "row-form", onSubmit: (event: Event) => event.preventDefault() },
    h(Field, {
      name: "Kind",
      children: (id) =>
        select(
          { id, value: kind, onChange: (event) => setKind(event.currentTarget.value as Kind) },
          ...KINDS.map((one) => option({ key: one, value: one }, one)),
        ),
    }),
    textField("Address", url, setUrl, { placeholder: EXAMPLES[kind] }),
    textField("App", app_name, setApp, { hint: "Empty: all apps." }),
    kind === "syslog"
      ? null
      : h(Field, {
          name: "Authorization header",
          hint: "Stored encrypted and never shown.",
          children: (id) =>
            input({
              id,
              type: "password",
              autocomplete: "off",
              value: authorization,
              onInput: (event) => setAuthorization(event.currentTarget.value),
            }),
        }),
    h(Action, {
      name: "Create the drain",
      class: "primary",
      disabled: readOnly || url.trim() === "",
      ...(readOnly ? { title: READ_ONLY } : {}),
      work: create,
    }),
  );
}
