import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, div, h, li, p, span, strong, ul } from "../html.ts";
import { ongoing } from "../ongoing.ts";
import { Ago, badge, card, sheet, useAnswer, when } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { figure } from "../parts/format.ts";
import { Spark } from "../parts/spark.ts";
import { lastSeconds, queryNow, queryRange, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { call, org } from "../session.ts";
import type { AppStatus } from "./app-tab.ts";
import { type Failure, failedBuilds, failedDeploy, nextSteps, RunningNow } from "./overview-ongoing.ts";

const EVERY_MS = 5000;
const TRAFFIC_MS = 15_000;
const SPAN_S = 3600;
const SHOWN = 100;
/** Worst first. */
const ORDER: readonly AppStatus["state"][] = ["down", "degraded", "starting", "healthy", "asleep", "empty"];

const byApp = <T>(series: readonly Series[], read: (points: [number, number][]) => T): Map<string, T> =>
  new Map(series.map(({ labels, points }) => [labels["app"] ?? "", read(points)]));

interface Traffic {
  requests: Map<string, number[]>;
  errors: Map<string, number>;
}

async function traffic(signal: AbortSignal): Promise<Traffic> {
  const responses = (more = ""): string => `sum by (app) (rate(svc_edge_http_responses_count${more}[5m]))`;
  const [requests, errors] = await Promise.all([
    queryRange(responses(), lastSeconds(SPAN_S, 60), signal),
    queryNow(`100 * (${responses('{status=~"5.."}')} or ${responses()} * 0) / ${responses()}`, signal),
  ]);
  return {
    requests: byApp(requests, (points) => points.map(([, value]) => value)),
    errors: byApp(errors, (points) => points.at(-1)?.[1] ?? 0),
  };
}

/** All apps, the failing ones on top with what to do; `nothing` when there is none. */
export function AppRows({ nothing }: { nothing: VNode }): VNode {
  const { machines, counts } = useCell(fleet);
  const now = useCell(ongoing);
  // A deploy that has ended changes its app at once.
  const deploys = now.deployments.map(({ app_name, version }) => `${app_name} ${version}`).join();
  const [round, slow] = [useRounds(EVERY_MS), useRounds(TRAFFIC_MS)];
  const answer = useAnswer(
    (signal) =>
      call("GET /v1/orgs/:org_slug/app_statuses", { params: { org_slug: org() }, query: { limit: SHOWN }, signal }),
    [org(), machines.size, counts?.machines, deploys, round],
  );
  const seen = useAnswer(traffic, [org(), slow]).value;
  return div(
    when(answer, ({ apps, next_cursor }) => {
      if (apps.length === 0) return nothing;
      const sorted = apps.toSorted((x, y) => ORDER.indexOf(x.state) - ORDER.indexOf(y.state));
      const failing = [
        ...sorted.filter(({ failures }) => failures.length > 0).map(failingApp),
        ...sorted.flatMap(failedDeploy),
        ...failedBuilds(now),
      ];
      return div(
        failing.length === 0 ? null : failures(failing),
        h(RunningNow, {}),
        card(
          "Apps",
          sheet(
            "Apps",
            ["state", "app", "URL", "requests/s, 1 h", "errors", "machines", "deployed"],
            sorted.map((app) => row(app, seen)),
          ),
          next_cursor === undefined ? null : p(a({ href: to("apps") }, "All apps")),
        ),
      );
    }),
  );
}

/** An app whose machines fail. */
const failingApp = ({ app_name, state, reason, release }: AppStatus): Failure => ({
  key: app_name,
  app_name,
  state,
  why: reason,
  next: [
    a({ href: to("apps", app_name, "logs") }, "Logs"),
    ...(release && release.version > 1 ? [span("roll back: ", code(`hangar rollback --app ${app_name}`))] : []),
  ],
});

function failures(all: readonly Failure[]): VNode {
  return card(
    "Needs attention",
    ul(
      { class: "failures" },
      ...all.map(({ key, app_name, state, why, next }) =>
        li(
          { key },
          p(badge(state), " ", strong(a({ href: to("apps", app_name) }, app_name)), span({ class: "why" }, ` ${why}`)),
          nextSteps(next),
        ),
      ),
    ),
  );
}

function row(app: AppStatus, seen: Traffic | undefined) {
  const { app_name, state, reason, urls, machines, release, last_release: last } = app;
  const errors = seen?.errors.get(app_name);
  const values = seen?.requests.get(app_name) ?? [];
  const [url] = urls;
  return {
    key: app_name,
    cells: [
      span({ title: reason }, badge(state)),
      a({ class: "long", href: to("apps", app_name) }, app_name),
      url === undefined
        ? span({ class: "dim" }, "not public")
        : /^https?:/.test(url)
          ? a({ class: "long", href: url, target: "_blank", rel: "noopener" }, url.replace(/^https?:\/\//, ""))
          : code(url),
      span(
        { class: "figure" },
        h(Spark, { name: `Requests per second of ${app_name}`, values }),
        figure(Math.round((values.at(-1) ?? 0) * 10) / 10),
      ),
      errors === undefined || Number.isNaN(errors) ? "–" : `${figure(Math.round(errors * 10) / 10)} %`,
      Object.entries(machines)
        .map(([name, count]) => `${count} ${name}`)
        .join(", ") || "none",
      last?.status === "running"
        ? badge(`deploying v${last.version}`)
        : release
          ? span(`v${release.version} `, h(Ago, { ms: Date.parse(release.created_at) }))
          : "never",
    ],
  };
}
