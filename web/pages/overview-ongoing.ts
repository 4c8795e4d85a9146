/** What is being built and deployed now, and what of it failed. */
import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { a, code, p, span } from "../html.ts";
import { type Ongoing, ongoing } from "../ongoing.ts";
import { badge, card, sheet } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { duration } from "../parts/format.ts";
import { to } from "../router.ts";
import type { AppStatus } from "./app-tab.ts";

const EVERY_MS = 1000;

/** Something that needs attention: in which state, why, and what to do. */
export interface Failure {
  key: string;
  app_name: string;
  state: string;
  why: string;
  next: readonly (VNode | string)[];
}

const buildPage = (app_name: string, id: string): string => `${to("apps", app_name, "releases")}?build=${id}`;

/** Builds and deploys that run, each for how long; nothing when none does. */
export function RunningNow(): VNode | null {
  const { builds, deployments } = useCell(ongoing);
  useRounds(EVERY_MS);
  if (builds.length + deployments.length === 0) return null;
  return card(
    "Running now",
    sheet(
      "Builds and deploys that run",
      ["state", "app", "progress", "for", "by", "more"],
      [...deployments.map(deployRow), ...builds.map(buildRow)],
    ),
  );
}

const lasting = (since: string): string =>
  duration(Math.max(1, Math.floor((Date.now() - Date.parse(since)) / 1000)) * 1000);

function deployRow({
  app_name,
  version,
  progress,
  description,
  created_at,
  created_by,
}: Ongoing["deployments"][number]) {
  return {
    key: `${app_name} v${version}`,
    cells: [
      badge("deploying"),
      a({ href: to("apps", app_name) }, app_name),
      span({ class: "progress" }, `v${version} · ${progress ?? (description || "begun")}`),
      lasting(created_at),
      created_by,
      a({ href: to("apps", app_name, "releases") }, "Releases"),
    ],
  };
}

function buildRow({ id, app_name, state, step, created_at, started_at, created_by }: Ongoing["builds"][number]) {
  return {
    key: id,
    cells: [
      badge(state === "queued" ? "queued" : "building"),
      a({ href: to("apps", app_name) }, app_name),
      span({ class: "progress" }, state === "queued" ? "waits for another build" : (step ?? "preparing")),
      lasting(started_at ?? created_at),
      created_by,
      a({ href: buildPage(app_name, id) }, "Output"),
    ],
  };
}

export const failedBuilds = ({ failed_builds }: Ongoing): Failure[] =>
  failed_builds.map(({ id, app_name, step, error }) => ({
    key: id,
    app_name,
    state: "build failed",
    why: [step === null ? "" : `at step ${step}`, error ?? ""].filter(Boolean).join(": "),
    next: [a({ href: buildPage(app_name, id) }, "Output"), span("mend it, then ", code("hangar deploy"))],
  }));

/** A deploy that failed, until the next one. */
export function failedDeploy({ app_name, release, last_release: last }: AppStatus): Failure[] {
  if (last?.status !== "failed") return [];
  const kept = release ? `v${release.version} keeps running` : "what ran before stays";
  const failure: Failure = {
    key: `${app_name} v${last.version}`,
    app_name,
    state: "deploy failed",
    why: `v${last.version}: ${last.failure ?? "no reason is known"}`,
    next: [
      kept,
      a({ href: to("apps", app_name, "releases") }, "Releases"),
      a({ href: to("apps", app_name, "logs") }, "Logs"),
      span("again: ", code("hangar deploy")),
    ],
  };
  return [failure];
}

/** What to do, with dots between. */
export const nextSteps = (next: Failure["next"]): VNode =>
  p({ class: "dim" }, ...next.flatMap((step, index) => (index > 0 ? [" · ", step] : [step])));
