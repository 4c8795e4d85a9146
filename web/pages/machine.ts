import type { ComponentType, VNode } from "preact";
import { useEffect } from "preact/hooks";
import { ACTIONS, perform } from "../actions.ts";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, dd, div, dl, dt, h, nav, span } from "../html.ts";
import { Action, Ago, badge, identifier, loading, pageHead, problem, tabs, useAnswer } from "../parts/basics.ts";
import { lazy } from "../parts/lazy.ts";
import { to } from "../router.ts";
import { isReadOnly, session } from "../session.ts";
import { Checks } from "./machine-checks.ts";
import { ConfigTab } from "./machine-config.ts";
import { LogsTab } from "./machine-logs.ts";
import { MetricsTab } from "./machine-metrics.ts";
import { type Machine, readMachine, type TabProps } from "./machine-tab.ts";
import { Timeline } from "./machine-timeline.ts";
import { sizeOf } from "./machine-words.ts";

const TABS: readonly { id: string; title: string; view: ComponentType<TabProps> }[] = [
  { id: "", title: "Events", view: Timeline },
  { id: "logs", title: "Logs", view: LogsTab },
  { id: "metrics", title: "Metrics", view: MetricsTab },
  { id: "checks", title: "Checks", view: Checks },
  { id: "config", title: "Config", view: ConfigTab },
  { id: "terminal", title: "Terminal", view: lazy(async () => (await import("./machine-terminal.ts")).Terminal) },
];

/** Counts the machine's events while the page is open. */
function useTurn(machine_id: string): number {
  const { events } = useCell(fleet);
  return events.find((event) => event.machine_id === machine_id)?.cursor ?? 0;
}

export function MachinePage({
  app_name,
  machine_id,
  tab,
}: {
  app_name: string;
  machine_id: string;
  tab: string;
}): VNode {
  const turn = useTurn(machine_id);
  const { value: machine, error } = useAnswer(
    (signal) => readMachine({ app_name, machine_id }, signal),
    [machine_id, turn],
  );
  useEffect(() => {
    if (machine) document.title = `${machine.name} · Hangar`;
  }, [machine?.name]);
  if (!machine) return div(crumbs(app_name), error === undefined ? loading() : problem(error));
  const shown = TABS.find(({ id }) => id === tab) ?? TABS[0];
  return div(
    crumbs(app_name),
    pageHead(machine.name, h(Buttons, { machine, app_name })),
    facts(machine),
    tabs(
      "About this machine",
      TABS.map(({ id, title }) => ({
        title,
        href: to("machines", app_name, machine_id, ...(id ? [id] : [])),
        here: id === shown?.id,
      })),
    ),
    shown ? h(shown.view, { machine, app_name, turn, key: shown.id }) : null,
  );
}

const crumbs = (app_name: string): VNode =>
  nav(
    { class: "crumbs", "aria-label": "Above" },
    a({ href: to("machines") }, "Machines"),
    " / ",
    a({ href: to("apps", app_name) }, app_name),
  );

function Buttons({ machine, app_name }: { machine: Machine; app_name: string }): VNode | null {
  if (isReadOnly(useCell(session))) return null;
  const target = { ...machine, app_name };
  const offered = ACTIONS.filter(({ name }) => name !== (machine.cordoned ? "Cordon" : "Uncordon"));
  return div(
    { class: "actions" },
    ...offered.map((action) =>
      h(Action, {
        key: action.name,
        name: action.name,
        class: action.danger ? "danger" : "",
        disabled: !action.from.includes(machine.state),
        work: () => perform(action, [target]),
      }),
    ),
  );
}

/** The last known state, marked as such when its host does not respond. */
const known = ({ state, host_status }: Machine): VNode[] =>
  host_status === "ok" ? [badge(state)] : [badge(host_status), span({ class: "dim" }, ` was ${state}`)];

function facts(machine: Machine): VNode {
  const { cordoned, lease, image_ref } = machine;
  const rows: [string, VNode | string | null][] = [
    ["State", span(...known(machine), cordoned ? span({ class: "tag" }, "cordoned") : null)],
    ["Id", identifier(machine.id)],
    ["Version", code(machine.instance_id)],
    ["Address", identifier(machine.private_ip)],
    ["Image", code(`${image_ref.repository}${image_ref.tag ? `:${image_ref.tag}` : ""}`)],
    ["Size", sizeOf(machine) || "as the platform gives"],
    [
      "Where",
      span(
        machine.region,
        span({ class: "dim" }, ` on host ${machine.host}`),
        machine.host_status === "ok" ? null : badge(machine.host_status),
      ),
    ],
    ["Created", h(Ago, { ms: Date.parse(machine.created_at) })],
    [
      "Lease",
      lease
        ? span(
            { class: "tag warn" },
            `held by ${lease.owner}${lease.description ? `: ${lease.description}` : ""}, until ${new Date(lease.expires_at * 1000).toLocaleTimeString()}`,
          )
        : span({ class: "dim" }, "not held"),
    ],
  ];
  return dl({ class: "facts panel" }, ...rows.flatMap(([name, value]) => [div({ key: name }, dt(name), dd(value))]));
}
