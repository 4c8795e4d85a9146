/** The status of apps: one state with its reason, URLs, machines and the current release. */
import Type, { type Static } from "typebox";
import type { Release, ReleaseStore } from "#apps/release-store.ts";
import type { AppRange, AppStore } from "#apps/store.ts";
import type { App } from "#apps/types.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { appOf, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { appHealth } from "#machines/health.ts";
import type { MachineStore, StateCount } from "#machines/store.ts";
import type { ShownMachine } from "#machines/types.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { Listening } from "./listening.ts";

const text = Type.String();

const ReleaseSummary = Type.Object({
  version: Type.Integer(),
  status: text,
  description: text,
  image: Type.Union([text, Type.Null()]),
  image_digest: Type.Union([text, Type.Null()]),
  created_by: text,
  created_at: text,
  failure: Type.Union([text, Type.Null()]),
});

const AppStatus = Type.Object({
  app_name: text,
  state: Type.Union(
    [
      Type.Literal("healthy"),
      Type.Literal("degraded"),
      Type.Literal("down"),
      Type.Literal("asleep"),
      Type.Literal("starting"),
      Type.Literal("empty"),
    ],
    { description: "One state, computed from machines, checks, exits and what the programs listen on." },
  ),
  reason: Type.String({ description: "Why it is in this state." }),
  urls: Type.Array(text, { description: "Its URLs; none when it has no address or no open port." }),
  regions: Type.Array(text),
  machines: Type.Record(Type.String(), Type.Integer(), {
    description: "How many machines are in each state; `unknown` or `unreachable` when their host is.",
  }),
  failures: Type.Array(Type.Object({ machine_id: text, machine_name: text, reason: text }), {
    description: `Machines that fail, each with its reason; at most ${PROXY_LIMITS.status_failures}.`,
  }),
  release: Type.Union([ReleaseSummary, Type.Null()], { description: "The newest complete release, which runs." }),
  last_release: Type.Union([ReleaseSummary, Type.Null()], {
    description: "The newest release, also one that failed or still runs.",
  }),
});

export interface StatusParts {
  apps: Pick<AppStore, "apps">;
  releases: Pick<ReleaseStore, "newestOfEach">;
  store: Pick<MachineStore, "oldestOfEach" | "stateCounts">;
  listening: Listening;
  clock: Clock;
  /** Whether a host sent a recent heartbeat; otherwise the states of its machines are those of its last one. */
  hostStatus(host_id: string): "ok" | "unknown" | "unreachable";
  /** The app's URLs, the one to show first. */
  urls(app_id: string): string[];
}

export function statusRoutes(parts: StatusParts): Row[] {
  return [
    route("GET /v1/apps/:app_name/status", {
      summary: "Get an app's state (healthy, degraded, down, asleep) with its reason, URLs and release",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: AppStatus },
      async handle(call) {
        const app = appOf(call);
        return statusOf(parts, app, (await readFacts(parts, { app_id: app.id }))(app.id));
      },
    }),
    route("GET /v1/orgs/:org_slug/app_statuses", {
      summary: "List the status of an organization's apps",
      part: "apps",
      access: "read org",
      pages: inPages("apps", ["text"], { size: PROXY_LIMITS.status_page }),
      response: { status: 200, schema: Type.Object({ apps: Type.Array(AppStatus) }) },
      async handle({ page, ...call }) {
        const { id: org_id } = orgOf(call);
        const [found, factsOf] = await Promise.all([
          parts.apps.apps(org_id, page.request),
          readFacts(parts, { org_id, page: page.request }),
        ]);
        const list = page.take(found, ({ name }) => [name]);
        return { apps: await Promise.all(list.map((app) => statusOf(parts, app, factsOf(app.id)))) };
      },
    }),
  ];
}

/** What an app's status is made of. */
interface Facts {
  failed: readonly ShownMachine[];
  oldest: readonly ShownMachine[];
  counts: readonly StateCount[];
  releases: readonly Omit<Release, "definition">[];
}

/** Of all apps of a range at once, however many there are. */
async function readFacts({ store, releases }: StatusParts, range: AppRange): Promise<(app_id: string) => Facts> {
  const limit = PROXY_LIMITS.status_machines;
  const [failed, oldest, counts, newest] = await Promise.all([
    store.oldestOfEach(range, { states: ["failed"], limit }).then(byApp),
    store.oldestOfEach(range, { limit }).then(byApp),
    store.stateCounts(range).then(byApp),
    releases.newestOfEach(range, PROXY_LIMITS.status_releases).then(byApp),
  ]);
  return (id) => ({ failed: failed(id), oldest: oldest(id), counts: counts(id), releases: newest(id) });
}

function byApp<Of extends { app_id: string }>(all: readonly Of[]): (app_id: string) => readonly Of[] {
  const groups = Map.groupBy(all, ({ app_id }) => app_id);
  return (app_id) => groups.get(app_id) ?? [];
}

async function statusOf(
  parts: StatusParts,
  { id, name }: Pick<App, "id" | "name">,
  { failed, oldest, counts, releases }: Facts,
): Promise<Static<typeof AppStatus>> {
  const present = [...new Map([...oldest, ...failed].map((machine) => [machine.id, machine])).values()];
  const complete = releases.find(({ status }) => status === "complete");
  const problems = new Map([...(await listeningProblems(parts.listening, present)), ...hostProblems(parts, present)]);
  const health = appHealth(present, parts.clock.now(), problems);
  return {
    app_name: name,
    ...health,
    reason:
      oldest.length < PROXY_LIMITS.status_machines ? health.reason : `${health.reason} ${lookedAt(present, counts)}`,
    failures: health.failures.slice(0, PROXY_LIMITS.status_failures),
    urls: parts.urls(id),
    regions: [...new Set(present.map(({ region }) => region))].sort(),
    machines: Object.fromEntries(
      [...Map.groupBy(counts, (one) => knownState(parts, one))].map(([state, all]) => [state, sum(all)]),
    ),
    release: complete ? summary(complete) : null,
    last_release: releases[0] ? summary(releases[0]) : null,
  };
}

const sum = (counts: readonly { machines: number }[]): number => counts.reduce((all, one) => all + one.machines, 0);

const lookedAt = (machines: readonly unknown[], counts: readonly { machines: number }[]): string =>
  `(${machines.length} of ${sum(counts)} machines checked: the failed and the oldest)`;

/** The stored state may be stale while the host sends no heartbeat, so the host's status is shown instead. */
function knownState({ hostStatus }: StatusParts, { state, host_id }: Pick<ShownMachine, "state" | "host_id">): string {
  const status = hostStatus(host_id);
  return status === "ok" ? state : status;
}

/** Problems of machines whose host sends no heartbeat. */
function* hostProblems({ hostStatus }: StatusParts, machines: readonly ShownMachine[]): Generator<[string, string]> {
  for (const { id, host_id } of machines) {
    const status = hostStatus(host_id);
    if (status !== "ok") yield [id, `its host ${host_id} is ${status}; it ran there at the host's last heartbeat`];
  }
}

/**
 * Running machines whose program does not listen where requests go. Only some: machines of an app run the same
 * program.
 */
async function listeningProblems(
  listening: Listening,
  machines: readonly ShownMachine[],
): Promise<Map<string, string>> {
  const open = machines.filter(({ state, config }) => state === "started" && (config.services ?? []).length > 0);
  const read = open
    .slice(0, PROXY_LIMITS.status_probes)
    .map(async ({ id, config }): Promise<[string, string] | undefined> => {
      for (const { protocol, internal_port } of config.services ?? []) {
        const problem = await listening.reason(id, protocol, internal_port);
        if (problem !== undefined) return [id, problem];
      }
      return undefined;
    });
  return new Map((await Promise.all(read)).filter((one) => one !== undefined));
}

function summary(release: Omit<Release, "definition">): Static<typeof ReleaseSummary> {
  const { version, status, description, image, image_digest, created_by, created_at, failure } = release;
  return { version, status, description, image, image_digest, created_by, created_at: isoTime(created_at), failure };
}
