import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, button, code, div, h, p, span, strong } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { type Alert, labelLink, readAlerts, ruleText, since } from "../parts/alerts.ts";
import { badge, empty, pageHead, sheet, tabs, useAnswer, when } from "../parts/basics.ts";
import { choices, useRounds } from "../parts/controls.ts";
import { plural } from "../parts/format.ts";
import { remember, to } from "../router.ts";
import { isReadOnly, org, session } from "../session.ts";
import { Receivers } from "./alert-receivers.ts";
import { RuleFiles } from "./alert-rules.ts";
import { matchersOf, NewSilence, Silences } from "./alert-silences.ts";

const TABS = [
  { id: "", title: "Alerts" },
  { id: "silences", title: "Silences" },
  { id: "receivers", title: "Receivers and messages" },
  { id: "rules", title: "Rules" },
] as const;
const EVERY_MS = 5000;
const SHOWN = 200;
/** Firing first. */
const ORDER: readonly string[] = ["firing", "pending", "resolved"];

/** `#/alerts`, `#/alerts/silences`, `#/alerts/receivers`, `#/alerts/rules/<file>`. */
export function Page({ path, query }: PageProps): VNode {
  const now = useCell(session);
  const readOnly = isReadOnly(now);
  const [tab = "", file] = path;
  const linked = query.get("org");
  const unseen = linked !== null && !now?.organizations.some(({ slug }) => slug === linked);
  return div(
    pageHead("Alerts"),
    unseen
      ? p({ class: "note bad", role: "alert" }, `Your token does not see ${linked}, to which the link leads.`)
      : null,
    tabs(
      "About alerts",
      TABS.map(({ id, title }) => ({ title, href: to("alerts", ...(id ? [id] : [])), here: id === tab })),
    ),
    tab === ""
      ? h(AlertList, { readOnly, app: query.get("app") ?? "", key: query.get("app") ?? "" })
      : tab === "silences"
        ? h(Silences, { readOnly })
        : tab === "receivers"
          ? h(Receivers, { readOnly })
          : tab === "rules"
            ? h(RuleFiles, { file })
            : empty(`There is no page ${tab} of alerts.`),
  );
}

function AlertList({ readOnly, app }: { readOnly: boolean; app: string }): VNode {
  const { machines } = useCell(fleet);
  const round = useRounds(EVERY_MS);
  const [resolved, setResolved] = useState(false);
  const [wanted, setWanted] = useState(app);
  const [silencing, setSilencing] = useState<Alert | undefined>();
  const answer = useAnswer(
    (signal) => readAlerts(signal, { limit: SHOWN, resolved, ...(wanted ? { app_name: wanted } : {}) }),
    [org(), resolved, wanted, round],
  );
  const all = (): void => {
    setWanted("");
    remember({});
  };
  return div(
    choices(
      { class: "filters", label: "State" },
      [
        ["Now", false],
        ["And of the last 15 minutes", true],
      ],
      resolved,
      setResolved,
      wanted ? button({ type: "button", class: "chip", onClick: all }, `app ${wanted} ×`) : null,
    ),
    when(answer, ({ alerts, next_cursor }) =>
      alerts.length === 0
        ? empty(
            "No alert is pending or firing.",
            p("The platform evaluates its own rules and yours all the time; what they find appears here."),
          )
        : div(
            sheet(
              "Alerts",
              ["state", "alert", "what to do", "labels", "since", "silence"],
              alerts
                .toSorted((x, y) => ORDER.indexOf(x.state) - ORDER.indexOf(y.state))
                .map((alert) => ({
                  key: JSON.stringify([alert.rule_file, alert.group, alert.labels]),
                  cells: [
                    badge(alert.state),
                    named(alert),
                    ruleText(alert.annotations["description"] ?? "–"),
                    labels(alert, machines),
                    since(alert),
                    alert.silenced_by.length > 0
                      ? span(badge("silenced"))
                      : button(
                          {
                            type: "button",
                            disabled: readOnly,
                            ...(readOnly ? { title: "Your token can only read" } : {}),
                            onClick: () => setSilencing(alert),
                          },
                          "Silence",
                        ),
                  ],
                })),
            ),
            next_cursor === undefined ? null : p({ class: "dim" }, `The first ${plural(SHOWN, "alert")} are shown.`),
          ),
    ),
    silencing
      ? h(NewSilence, {
          matchers: matchersOf(silencing.labels),
          onClose: () => setSilencing(undefined),
          onMade: answer.again,
        })
      : null,
  );
}

const named = ({ labels: { alertname = "", severity }, annotations, value }: Alert): VNode =>
  div(
    strong(alertname),
    severity ? span({ class: "tag" }, severity) : null,
    p(annotations["summary"] ?? `value ${value}`),
  );

const labels = (alert: Alert, machines: Parameters<typeof labelLink>[2]): VNode =>
  div(
    ...Object.entries(alert.labels)
      .filter(([name]) => name !== "alertname" && name !== "severity")
      .map(([name, value]) =>
        div({ key: name }, span({ class: "dim" }, `${name} `), labelLink(name, alert, machines) ?? code(value)),
      ),
    div(span({ class: "dim" }, "rules "), a({ href: to("alerts", "rules", alert.rule_file) }, alert.rule_file)),
  );
