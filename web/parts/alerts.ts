/** Lists of alerts, for the alerts page, an app and the overview. */
import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { type FleetMachine, fleet } from "../fleet.ts";
import { a, code, h, li, p, span, ul } from "../html.ts";
import { to } from "../router.ts";
import { call, org } from "../session.ts";
import { Ago, badge, card, useAnswer } from "./basics.ts";
import { useRounds } from "./controls.ts";

type Answer = Awaited<ReturnType<typeof readAlerts>>;
export type Alert = Answer["alerts"][number];

const EVERY_MS = 15_000;
/** Alerts in a small list. */
const SHOWN = 5;

export const readAlerts = (signal: AbortSignal, query: { resolved?: boolean; app_name?: string; limit: number }) =>
  call("GET /v1/orgs/:org_slug/alerts", { params: { org_slug: org() }, query, signal });

/** Text of a rule; what stands between backticks is a command. */
export const ruleText = (text: string): VNode =>
  span(...text.split("`").map((part, index) => (index % 2 === 1 ? code({ key: index }, part) : part)));

/** A link to what a label names: an app, a machine by its instance, a volume or a host; undefined for other labels. */
export function labelLink(
  name: string,
  { labels }: Alert,
  machines: ReadonlyMap<string, FleetMachine>,
): VNode | undefined {
  const value = labels[name] ?? "";
  if (value === "") return undefined;
  const { app } = labels;
  const machine = [...machines.values()].find(({ id, version }) => value === version || value === id);
  if (name === "app") return a({ href: to("apps", value) }, value);
  if (name === "host") return a({ href: to("hosts") }, value);
  if (name === "id" && app && value.startsWith("vol_")) return a({ href: to("volumes", app, value) }, value);
  return machine && a({ href: to("machines", machine.app_name, machine.id) }, machine.name);
}

/** Where it is: its app and machine. */
export function alertPlace(alert: Alert, machines: ReadonlyMap<string, FleetMachine>): VNode {
  const links = ["app", "instance", "id", "host"].map((name) => labelLink(name, alert, machines)).filter(Boolean);
  return span(...links.flatMap((link, index) => (index > 0 ? [", ", link] : [link])));
}

/** What fires now, of one app or of all; nothing when nothing does, or when the token may not see alerts. */
export function FiringAlerts({ app_name }: { app_name: string | undefined }): VNode | null {
  const { machines } = useCell(fleet);
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => readAlerts(signal, { limit: 100, ...(app_name === undefined ? {} : { app_name }) }),
    [org(), app_name, round],
  );
  const firing = answer.value?.alerts.filter(
    ({ state, silenced_by }) => state === "firing" && silenced_by.length === 0,
  );
  if (!answer.value && answer.error === undefined) return p({ class: "loading offscreen", role: "status" }, "Loading…");
  if (!firing || firing.length === 0) return null;
  const more = firing.length > SHOWN ? `All ${firing.length} that fire` : "All alerts";
  return card(
    "Alerts",
    ul(
      { class: "failures" },
      ...firing.slice(0, SHOWN).map((alert) => {
        const { alertname = "", severity = "" } = alert.labels;
        return li(
          { key: JSON.stringify(alert.labels) },
          p(badge(severity || "firing"), " ", alertname, " ", alertPlace(alert, machines)),
          p(span({ class: "why" }, alert.annotations["summary"] ?? ""), " ", since(alert)),
          alert.annotations["description"] ? p({ class: "dim" }, ruleText(alert.annotations["description"])) : null,
        );
      }),
    ),
    p(a({ href: app_name === undefined ? to("alerts") : `${to("alerts")}?app=${encodeURIComponent(app_name)}` }, more)),
  );
}

/** Since when it is as it is. */
export const since = ({ resolved_at, fired_at, active_at }: Alert): VNode =>
  h(Ago, { ms: Date.parse(resolved_at ?? fired_at ?? active_at) });
