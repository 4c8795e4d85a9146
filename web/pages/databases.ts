import type { VNode } from "preact";
import type { NodeState, ObservedNode } from "#client/db-nodes.ts";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, div, h, p, span } from "../html.ts";
import { useNodes } from "../nodes.ts";
import { badge, block, card, empty, pageHead, sheet, useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { clusterDrawing, type DrawnNode } from "../parts/cluster-drawing.ts";
import { useRounds } from "../parts/controls.ts";
import { duration, figure, plural } from "../parts/format.ts";
import { Feed } from "../parts/node-feed.ts";
import { lastSeconds, queryNow, queryRange, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { org } from "../session.ts";

/** One node of a replicated database, as last reported. */
interface Node {
  app: string;
  instance: string;
  primary: boolean;
  term: number;
  lag_s: number;
  replicas: number;
  /** Position of each database. */
  at: Map<string, number>;
  /** Databases it cannot use, and why. */
  problems?: NodeState["problems"];
  /** Why it does not respond. */
  silent?: string;
}

const EVERY_MS = 5000;
const SPAN_S = 900;
const AT_NOW = ["is_primary", "term", "lag_seconds", "replicas", "txid"] as const;

async function topology(
  signal: AbortSignal,
): Promise<{ nodes: Node[]; lag: Series[]; range: ReturnType<typeof lastSeconds> }> {
  const range = lastSeconds(SPAN_S);
  const queries = AT_NOW.map((name) => queryNow(`hangar_db_${name}`, signal));
  const [lag, ...found] = await Promise.all([queryRange("hangar_db_lag_seconds", range, signal), ...queries]);
  const nodes = new Map<string, Node>();
  for (const [place, list] of found.entries()) {
    for (const series of list) put(nodes, AT_NOW[place] ?? "", series);
  }
  return { nodes: [...nodes.values()], lag, range };
}

function put(nodes: Map<string, Node>, name: string, { labels, points }: Series): void {
  const { app = "", instance = "", db = "" } = labels;
  const value = points.at(-1)?.[1] ?? 0;
  const node = nodes.get(instance) ?? {
    app,
    instance,
    primary: false,
    term: 0,
    lag_s: 0,
    replicas: 0,
    at: new Map<string, number>(),
  };
  nodes.set(instance, node);
  if (name === "is_primary") node.primary = value === 1;
  else if (name === "term") node.term = value;
  else if (name === "lag_seconds") node.lag_s = value;
  else if (name === "replicas") node.replicas = value;
  else node.at.set(db, value);
}

/** Live state takes precedence over the last scrape, which covers silent nodes. */
function overlaid(scraped: readonly Node[], live: ReadonlyMap<string, ObservedNode>): Node[] {
  const nodes = new Map(scraped.map((node) => [node.instance, node]));
  for (const [instance, { app_name: app, state, reason }] of live) {
    const before = nodes.get(instance);
    if (state) {
      const { primary, term, lag_ms, replicas, databases, problems } = state;
      const at = new Map(Object.entries(databases));
      nodes.set(instance, { app, instance, primary, term, lag_s: lag_ms / 1000, replicas, at, problems });
    } else if (before) nodes.set(instance, { ...before, primary: false, silent: reason });
  }
  return [...nodes.values()];
}

/** Transactions that a node lacks compared with its primary, over all databases. */
function behind(node: Node, primary: Node | undefined): string {
  if (node.primary) return "-";
  if (!primary) return "?";
  const missing = [...primary.at].reduce((sum, [db, at]) => sum + Math.max(0, at - (node.at.get(db) ?? 0)), 0);
  return missing === 0 ? "nothing" : plural(missing, "transaction");
}

const positions = ({ at }: Node): VNode =>
  span(
    ...[...at]
      .sort(([one], [two]) => (one < two ? -1 : 1))
      .flatMap(([db, txid], place) => [place > 0 ? ", " : "", code({ key: db }, `${db} ${txid.toLocaleString("en")}`)]),
  );

/** Primary, replicas, lag and transactions, live. */
export function Page(): VNode {
  const round = useRounds(EVERY_MS);
  const { machines } = useCell(fleet);
  const answer = useAnswer(topology, [org(), round]);
  const live = useNodes(org());
  const machineOf = new Map([...machines.values()].map((machine) => [machine.version, machine]));
  const named = (instance: string): VNode => {
    const machine = machineOf.get(instance);
    return machine ? a({ href: to("machines", machine.app_name, machine.id) }, machine.name) : code(instance);
  };
  return div(
    pageHead("Databases"),
    when(answer, ({ nodes: scraped, lag, range }) => {
      const nodes = overlaid(scraped, live.nodes);
      if (nodes.length === 0) return nothing();
      const apps = [...new Set(nodes.map(({ app }) => app))].sort();
      return div(
        ...apps.map((app) =>
          cluster(
            app,
            nodes.filter((node) => node.app === app),
            named,
            (instance) => machineOf.get(instance)?.name ?? instance,
          ),
        ),
        h(Feed, { lines: live.feed, link: live.link }),
        h(Chart, {
          title: "Replication lag",
          series: lag,
          range,
          format: lagOf,
          nameOf: ({ labels }: Series) => machineOf.get(labels["instance"] ?? "")?.name ?? labels["instance"] ?? "",
        }),
      );
    }),
  );
}

/** Lags of a millisecond are the rule, so their fractions are shown. */
const lagOf = (seconds: number): string =>
  seconds < 0.01 ? `${Number((seconds * 1000).toPrecision(2))} ms` : duration(seconds * 1000);

/** A larger lag is a warning; the default of `--max-lag`. */
const LATE_S = 1;

const isLate = ({ primary, silent, lag_s }: Node): boolean => !primary && !silent && lag_s > LATE_S;

function drawn(node: Node, nameOf: (instance: string) => string, primary: Node | undefined): DrawnNode {
  const alarms = Object.values(node.problems ?? {}).filter(({ state }) => !NO_ALARM.has(state));
  const broken = node.silent !== undefined || alarms.length > 0;
  const missing = behind(node, primary);
  return {
    key: node.instance,
    name: nameOf(node.instance),
    role: node.silent ? "unreachable" : node.primary ? "primary" : "replica",
    lag: `${duration(node.lag_s * 1000)}${missing === "nothing" ? "" : `, ${missing}`} behind`,
    state: broken ? "bad" : isLate(node) ? "late" : "good",
  };
}

/** A warning for each late replica. */
const lateness = (node: Node, named: (instance: string) => VNode, primary: Node | undefined): VNode[] =>
  isLate(node)
    ? [
        p(
          { role: "alert", class: "note bad", key: `${node.instance} late` },
          named(node.instance),
          ` is ${duration(node.lag_s * 1000)} behind (${behind(node, primary)}): what only the primary has would be lost with it.`,
        ),
      ]
    : [];

function cluster(
  app: string,
  nodes: readonly Node[],
  named: (instance: string) => VNode,
  nameOf: (instance: string) => string,
): VNode {
  const primary = nodes.find((node) => node.primary);
  const rows = nodes.toSorted((one, two) => Number(two.primary) - Number(one.primary) || one.lag_s - two.lag_s);
  return card(
    app,
    primary ? null : p({ role: "alert", class: "note bad" }, "No node is primary: writes are not possible now."),
    ...rows.flatMap((node) => [...troubles(node, named), ...lateness(node, named, primary)]),
    clusterDrawing(
      app,
      rows.map((node) => drawn(node, nameOf, primary)),
    ),
    sheet(
      `Nodes of ${app}`,
      ["node", "role", "term", "behind", "lag", "replicas", "databases, each at its transaction"],
      rows.map((node) => ({
        key: node.instance,
        cells: [
          named(node.instance),
          node.silent
            ? span({ title: node.silent }, badge("unreachable"))
            : badge(node.primary ? "primary" : "replica"),
          figure(node.term),
          behind(node, primary),
          node.primary || node.silent ? "-" : lagOf(node.lag_s),
          node.primary ? figure(node.replicas) : "-",
          positions(node),
        ],
      })),
    ),
  );
}

/** What passes by itself, or has to be known, is no alarm. */
const NO_ALARM: ReadonlySet<string> = new Set(["opening", "kept"]);

/** A warning for each unusable database. */
const troubles = ({ instance, problems = {} }: Node, named: (instance: string) => VNode): VNode[] =>
  Object.entries(problems).map(([db, { state, reason }]) => {
    const alarm = NO_ALARM.has(state) ? { role: "status", class: "note" } : { role: "alert", class: "note bad" };
    return p({ ...alarm, key: `${instance} ${db}` }, named(instance), ": ", code(db), ` is ${state}: ${reason}`);
  });

const nothing = (): VNode =>
  empty(
    "No node of a replicated database has reported yet.",
    p("A machine that runs one is seen here when the platform scrapes it:"),
    block('{"metrics": {"port": 20202, "path": "/metrics"}}'),
    p("Add it to the machine's config, beside the command that starts ", code("hangar db node"), "."),
  );
