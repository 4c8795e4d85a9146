import type { ComponentType, VNode } from "preact";
import { useCell } from "../cell.ts";
import { a, code, div, h, nav, p, span } from "../html.ts";
import { Ago, badge, empty, pageHead, problem, tabs } from "../parts/basics.ts";
import { lazy } from "../parts/lazy.ts";
import { Logs } from "../parts/logs.ts";
import { to } from "../router.ts";
import { isReadOnly, session } from "../session.ts";
import { AppActions } from "./app-actions.ts";
import { AppBoards } from "./app-boards.ts";
import { AppMachines } from "./app-machines.ts";
import { AppOverview } from "./app-overview.ts";
import { AppReleases, shortDigest } from "./app-releases.ts";
import { Secrets } from "./app-secrets.ts";
import { AppServices } from "./app-services.ts";
import { AppSettings, AppStorage } from "./app-settings.ts";
import { type AppStatus, type AppTabProps, useAppStatus } from "./app-tab.ts";

const TABS: readonly { id: string; title: string; view: ComponentType<AppTabProps> }[] = [
  { id: "", title: "Overview", view: AppOverview },
  { id: "machines", title: "Machines", view: AppMachines },
  { id: "releases", title: "Releases and builds", view: AppReleases },
  { id: "previews", title: "Previews", view: lazy(async () => (await import("./app-previews.ts")).AppPreviews) },
  { id: "logs", title: "Logs", view: AppLogs },
  { id: "metrics", title: "Metrics", view: AppBoards },
  { id: "services", title: "Network", view: AppServices },
  { id: "storage", title: "Storage", view: AppStorage },
  { id: "secrets", title: "Secrets", view: Secrets },
  { id: "settings", title: "Settings", view: AppSettings },
];

/** Home of an app: its state with the reason, its URL, its release, and what can be done. */
export function AppPage({ app_name, tab }: { app_name: string; tab: string }): VNode {
  const readOnly = isReadOnly(useCell(session));
  const shown = TABS.find(({ id }) => id === tab);
  const answer = useAppStatus(app_name);
  if (answer.value === undefined && answer.error !== undefined)
    return div(pageHead(app_name), problem(answer.error), p(a({ href: to("apps") }, "All apps")));
  return div(
    nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("apps") }, "Apps")),
    pageHead(app_name, h(AppActions, { app_name, status: answer.value })),
    h(Head, { status: answer.value }),
    tabs(
      "About this app",
      TABS.map(({ id, title }) => ({ title, href: to("apps", app_name, ...(id ? [id] : [])), here: id === shown?.id })),
    ),
    shown
      ? h(shown.view, { app_name, readOnly, status: answer.value, key: shown.id })
      : empty(`There is no page ${tab} of an app.`, p(a({ href: to("apps", app_name) }, "Overview of the app"))),
  );
}

/** State and URL, then the release. The lines are there before the data, so that nothing moves when it comes. */
function Head({ status }: { status: AppStatus | undefined }): VNode {
  return div(
    { class: "app-head", "aria-busy": status === undefined },
    p(
      status
        ? span({ class: "state" }, badge(status.state), span({ class: "why" }, status.reason))
        : span({ class: "skeleton" }),
    ),
    p(status ? address(status) : span({ class: "skeleton" })),
    p({ class: "dim" }, status ? release(status) : span({ class: "skeleton" })),
  );
}

function address({ app_name, urls }: AppStatus): VNode {
  const [url] = urls;
  if (url === undefined)
    return span(
      { class: "dim" },
      "No public URL: it has no address or no service. ",
      a({ href: to("apps", app_name, "services") }, "Network"),
    );
  return /^https?:/.test(url) ? a({ class: "url", href: url, target: "_blank", rel: "noopener" }, url) : code(url);
}

function release({ release: current, last_release: last, regions }: AppStatus): VNode {
  const where = regions.length > 0 ? ` · ${regions.join(", ")}` : "";
  const failed = last && last.status !== "complete" && last.version !== current?.version;
  return span(
    current
      ? span(
          `v${current.version} · `,
          code(current.image ?? ""),
          " ",
          shortDigest(current.image_digest),
          " · ",
          h(Ago, { ms: Date.parse(current.created_at) }),
        )
      : "No release yet",
    where,
    failed
      ? span(
          { class: "warn-text" },
          ` · v${last.version} ${last.status === "running" ? "is being deployed" : "failed"}`,
        )
      : null,
  );
}

/** Logs of all machines of the app, in one stream. */
function AppLogs({ app_name }: AppTabProps): VNode {
  return h(Logs, {
    source: { app_name },
    nothing: empty("No log lines yet.", p("The stdout and stderr of its machines appear here.")),
  });
}
