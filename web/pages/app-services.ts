import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, div, form, h, input, li, p, span, ul } from "../html.ts";
import { Action, badge, block, card, empty, Field, sheet, showMessage, useAnswer, when } from "../parts/basics.ts";
import { useRounds, useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { plural } from "../parts/format.ts";
import { queryNow, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { call } from "../session.ts";

export interface Service {
  protocol: string;
  port: number;
  end_port: number;
  handlers: string[];
  urls: string[];
  problems: string[];
  machines: {
    id: string;
    state: string;
    internal_port: number;
    serving: boolean;
    problem?: string | undefined;
    in_progress: number;
    soft_limit: number;
    hard_limit?: number | undefined;
    autostart: boolean;
    autostop: string;
  }[];
}

/** Why it is unreachable: a port that is not open, or programs that listen elsewhere. */
export const troubles = ({ problems, machines }: Service): string[] => [
  ...problems,
  ...machines.flatMap(({ id, problem }) => (problem === undefined ? [] : [`${id}: ${problem}`])),
];

export const portWords = ({ port, end_port, protocol, handlers }: Service): string =>
  `${end_port > port ? `${port}–${end_port}` : port}/${protocol}${handlers.length > 0 ? ` ${handlers.join(", ")}` : ""}`;

export const addresses = ({ urls }: Service): VNode =>
  span(
    ...urls.flatMap((url) => [
      /^https?:/.test(url)
        ? a({ key: url, href: url, target: "_blank", rel: "noopener" }, url)
        : code({ key: url }, url),
      " ",
    ]),
  );

const EVERY_MS = 5000;

/** Requests and connections of each machine in the last hour, by version. */
async function visits(
  app_name: string,
  signal: AbortSignal,
): Promise<Map<string, { requests: number; connections: number }>> {
  const lastHour = (name: string): Promise<Series[]> =>
    queryNow(`sum by (instance) (increase(${name}{app=${JSON.stringify(app_name)}}[1h]))`, signal);
  const [requests, connections] = await Promise.all([
    lastHour("svc_app_http_responses_count"),
    lastHour("svc_app_tcp_connects_count"),
  ]);
  const byInstance = (found: readonly Series[]): Map<string, number> =>
    new Map(found.map(({ labels, points }) => [labels["instance"] ?? "", Math.round(points.at(-1)?.[1] ?? 0)]));
  const [asked, connected] = [byInstance(requests), byInstance(connections)];
  return new Map(
    [...new Set([...asked.keys(), ...connected.keys()])].map((instance) => [
      instance,
      { requests: asked.get(instance) ?? 0, connections: connected.get(instance) ?? 0 },
    ]),
  );
}

/** Public access to the app: ports, machines, addresses and certificates. */
export function AppServices({ app_name, readOnly }: { app_name: string; readOnly: boolean }): VNode {
  const params = { app_name };
  const round = useRounds(EVERY_MS);
  const answer = useAnswer((signal) => call("GET /v1/apps/:app_name/services", { params, signal }), [app_name, round]);
  const visited = useAnswer((signal) => visits(app_name, signal), [app_name, round]).value;
  const open = async (): Promise<void> => {
    const { ip } = await call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
    showMessage(`Open at ${ip}.`);
    answer.again();
  };
  return div(
    when(answer, (found) =>
      div(
        found.open
          ? null
          : div(
              { class: "note" },
              p("The app has no address, so its ports are closed to the world."),
              readOnly ? null : p(h(Action, { name: "Give it a shared address", class: "primary", work: open })),
            ),
        found.services.length === 0
          ? empty(
              "Its machines have no services.",
              p("A service is a port that requests come in at. With a new machine:"),
              block(`hangar machines run hangar/hello --app ${app_name} --port 80:8080/http`),
            )
          : div(
              ...found.services.map((service) =>
                h(OneService, { service, app_name, visited, key: portWords(service) }),
              ),
            ),
      ),
    ),
    h(Egress, { app_name }),
    h(Addresses, { app_name, readOnly, onChange: answer.again }),
    h(Certificates, { app_name, readOnly }),
  );
}

/** The egress policy, and denied packets in the last hour. */
function Egress({ app_name }: { app_name: string }): VNode {
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/egress", { params: { app_name }, signal }),
    [app_name, round],
  );
  const denied = useAnswer(
    async (signal) => {
      const query = `sum(increase(svc_instance_egress_denied_count{app=${JSON.stringify(app_name)}}[1h]))`;
      return Math.round((await queryNow(query, signal))[0]?.points.at(-1)?.[1] ?? 0);
    },
    [app_name, round],
  ).value;
  return card(
    "Egress",
    when(answer, ({ mode, allow }) =>
      div(
        p(EGRESS_WORDS[mode] ?? mode),
        allow.length === 0 ? null : ul(...allow.map((entry) => li({ key: entry }, code(entry)))),
        denied ? p(`${plural(denied, "packet")} denied within the last hour.`) : null,
        p({ class: "dim" }, "Change it with ", code(`hangar egress set ${app_name} none`), "."),
      ),
    ),
  );
}

const EGRESS_WORDS: Record<string, string> = {
  all: "Machines reach everything but private and link-local addresses.",
  none: "Machines reach their own network only.",
  list: "Outside their own network machines reach only:",
};

function OneService({
  service,
  app_name,
  visited,
}: {
  service: Service;
  app_name: string;
  visited: Awaited<ReturnType<typeof visits>> | undefined;
}): VNode {
  const { machines } = useCell(fleet);
  const lastHour = (id: string): string => {
    const { requests = 0, connections = 0 } = visited?.get(machines.get(id)?.version ?? "") ?? {};
    const connected = plural(connections, "connection");
    return service.handlers.includes("http") ? `${plural(requests, "request")}, ${connected}` : connected;
  };
  return card(
    span(portWords(service), " "),
    p(addresses(service)),
    troubles(service).length > 0 ? ul(...troubles(service).map((text) => li({ key: text }, text))) : null,
    sheet(
      `Machines behind ${portWords(service)}`,
      ["machine", "state", "port", "serving", "in progress", "last hour, all ports", "when idle"],
      service.machines.map((machine) => ({
        key: machine.id,
        cells: [
          a(
            { href: to("machines", app_name, machine.id), title: machine.id },
            machines.get(machine.id)?.name ?? machine.id,
          ),
          badge(machine.state),
          String(machine.internal_port),
          machine.problem ? span({ title: machine.problem }, "requests fail") : machine.serving ? "yes" : "no",
          `${machine.in_progress} of ${machine.soft_limit}${machine.hard_limit ? `, at most ${machine.hard_limit}` : ""}`,
          visited ? lastHour(machine.id) : "…",
          machine.autostop === "off"
            ? "keeps running"
            : `${machine.autostop}${machine.autostart ? ", wakes by a request" : ""}`,
        ],
      })),
    ),
  );
}

function Addresses({
  app_name,
  readOnly,
  onChange,
}: {
  app_name: string;
  readOnly: boolean;
  onChange: () => void;
}): VNode {
  const answer = useShared(
    (signal) => call("GET /v1/apps/:app_name/ip_assignments", { params: { app_name }, signal }),
    [app_name],
  );
  const remove = (ip: string) => async (): Promise<void> => {
    if (!(await confirmed(`Take ${ip} away?`, "Without any address the app's ports are closed.", "Take it away")))
      return;
    await call("DELETE /v1/apps/:app_name/ip_assignments/:ip", { params: { app_name, ip } });
    answer.again();
    onChange();
  };
  return card(
    "Addresses",
    when(answer, ({ ips }) =>
      ips.length === 0
        ? p({ class: "dim" }, "None.")
        : sheet(
            "Addresses",
            ["address", "type", "region", ...(readOnly ? [] : ["remove"])],
            ips.map(({ ip, type, region }) => ({
              key: `${type} ${ip}`,
              cells: [
                code(ip),
                type,
                region || "everywhere",
                ...(readOnly ? [] : [h(Action, { name: "Remove", work: remove(ip) })]),
              ],
            })),
          ),
    ),
  );
}

function Certificates({ app_name, readOnly }: { app_name: string; readOnly: boolean }): VNode {
  const [hostname, setHostname] = useState("");
  const answer = useShared(
    (signal) => call("GET /v1/apps/:app_name/certificates", { params: { app_name }, query: {}, signal }),
    [app_name],
  );
  const get = async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/certificates/acme", {
      params: { app_name },
      body: { hostname: hostname.trim() },
    });
    setHostname("");
    answer.again();
  };
  const check = async (name: string): Promise<void> => {
    const params = { app_name, hostname: name };
    const one = await call("POST /v1/apps/:app_name/certificates/:hostname/check", { params });
    showMessage(
      one.ownership.proved ? `${name} routes to ${app_name}.` : (one.problem ?? "Its ownership is not verified yet."),
    );
    answer.again();
  };
  return card(
    "Host names",
    readOnly
      ? null
      : form(
          { class: "row-form", onSubmit: (event) => event.preventDefault() },
          h(Field, {
            name: "Name",
            children: (id) =>
              input({
                id,
                type: "text",
                autocomplete: "off",
                placeholder: "shop.example.com",
                value: hostname,
                onInput: (event) => setHostname(event.currentTarget.value),
              }),
          }),
          h(Action, { name: "Get a certificate", disabled: hostname.trim() === "", work: get }),
        ),
    when(answer, ({ certificates }) =>
      certificates.length === 0
        ? p({ class: "dim" }, "None yet.")
        : sheet(
            "Host names",
            ["name", "status", "kind", "ends", "problem", ""],
            certificates.map((one) => ({
              key: one.hostname,
              cells: [
                code(one.hostname),
                badge(one.status),
                one.kind,
                one.expires_at ? new Date(one.expires_at).toLocaleDateString() : "",
                one.problem ?? "",
                readOnly || (one.ownership.proved && one.status === "ready")
                  ? ""
                  : h(Action, { name: "Check again", work: () => check(one.hostname) }),
              ],
            })),
          ),
    ),
  );
}
