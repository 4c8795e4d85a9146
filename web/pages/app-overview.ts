import type { VNode } from "preact";
import { a, code, div, h, li, p, span, ul } from "../html.ts";
import { FiringAlerts } from "../parts/alerts.ts";
import { card, useAnswer, when } from "../parts/basics.ts";
import { clockTime } from "../parts/format.ts";
import { to } from "../router.ts";
import { call } from "../session.ts";
import { AppCharts } from "./app-charts.ts";
import { AppMachines } from "./app-machines.ts";
import { ReleaseList } from "./app-releases.ts";
import { AppRequests } from "./app-requests.ts";
import type { AppStatus, AppTabProps } from "./app-tab.ts";

const LINES = 8;
const FAILURES = 3;

/** What a person looks for first: failures, machines, traffic, releases. */
export function AppOverview(props: AppTabProps): VNode {
  const { app_name, status } = props;
  return div(
    status && status.failures.length > 0 ? h(Failures, { status }) : null,
    h(FiringAlerts, { app_name }),
    card("Machines", h(AppMachines, props)),
    h(AppRequests, { app_name }),
    h(AppCharts, { app_name }),
    card("Releases", h(ReleaseList, { app_name, limit: 5 })),
  );
}

function Failures({ status: { app_name, failures } }: { status: AppStatus }): VNode {
  return card(
    "Failures",
    ul(
      { class: "failures" },
      ...failures
        .slice(0, FAILURES)
        .map((failure) =>
          li(
            { key: failure.machine_id },
            p(
              a({ href: to("machines", app_name, failure.machine_id) }, failure.machine_name),
              span({ class: "why" }, ` ${failure.reason}`),
            ),
            h(LastLines, { app_name, machine_id: failure.machine_id }),
          ),
        ),
    ),
    failures.length > FAILURES ? p({ class: "dim" }, `and ${failures.length - FAILURES} more`) : null,
    p(a({ href: to("apps", app_name, "logs") }, "All logs")),
  );
}

function LastLines({ app_name, machine_id }: { app_name: string; machine_id: string }): VNode {
  const params = { app_name, machine_id };
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/machines/:machine_id/logs", { params, query: { tail: LINES }, signal }),
    [machine_id],
  );
  return div(
    when(answer, ({ lines }) =>
      lines.length === 0
        ? p({ class: "dim" }, "It wrote no log lines.")
        : div(
            { class: "log tail", tabIndex: 0, role: "group", "aria-label": "Last log lines" },
            ...lines.map(({ timestamp, stream, message }, index) =>
              div(
                { key: `${timestamp} ${index}`, class: stream },
                span({ class: "at" }, clockTime(timestamp)),
                code(message),
              ),
            ),
          ),
    ),
  );
}
