/** All nodes of a cluster, found from one of them: it names its primary, and the primary its replicas. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { NodeClient } from "../node-client.ts";
import { parsePosition } from "../position.ts";

/** Show a node: role, term, positions, replicas at /info. */
export interface NodeInfo {
  node: string;
  isPrimary: boolean;
  hostname: string;
  primary?: { hostname: string };
  term: number;
  path: string;
  lagMs: number;
  replicas: { node: string; hostname: string }[];
  databases: Record<string, string>;
  states: Record<string, { state: string; reason: string }>;
  ack?: { mode: string; replicas: number; inSync: string[]; acknowledged: Record<string, string> };
  proxy?: string;
}

export interface Surveyed {
  hostname: string;
  /** Undefined when it does not respond; then `problem` says why. */
  info?: NodeInfo;
  problem?: string;
}

export interface Survey {
  nodes: Surveyed[];
  /** The primary of the highest term. */
  primary: NodeInfo | undefined;
}

/** `urls`: at least one node; the others are discovered. */
export async function survey(urls: readonly string[], clock: Clock): Promise<Survey> {
  const found = new Map<string, Surveyed>();
  let next = urls.map((url) => new URL(url).host);
  while (next.length > 0) {
    const answers = await Promise.all(next.map((hostname) => query(hostname, clock)));
    for (const node of answers) found.set(node.hostname, node);
    const named = answers.flatMap(({ info }) => [
      info?.primary?.hostname,
      ...(info?.replicas ?? []).map((r) => r.hostname),
    ]);
    next = [...new Set(named)].filter((name) => name !== undefined && name !== "" && !found.has(name)) as string[];
  }
  const nodes = [...found.values()];
  const primaries = nodes.flatMap(({ info }) => (info?.isPrimary ? [info] : []));
  return { nodes, primary: primaries.toSorted((a, b) => b.term - a.term)[0] };
}

async function query(hostname: string, clock: Clock): Promise<Surveyed> {
  try {
    return { hostname, info: (await new NodeClient(`http://${hostname}`, clock).info()) as NodeInfo };
  } catch (error) {
    return { hostname, problem: messageOf(error) };
  }
}

/** Transactions that a node lacks compared with the primary, over all databases. */
export function behind(node: NodeInfo, primary: NodeInfo): number {
  const txid = (text: string | undefined): number => (text ? (parsePosition(text)?.txid ?? 0) : 0);
  const missing = Object.entries(primary.databases).map(([name, at]) => txid(at) - txid(node.databases[name]));
  return missing.reduce((sum, count) => sum + Math.max(0, count), 0);
}

function roleOf({ isPrimary, primary }: NodeInfo): string {
  if (isPrimary) return "primary";
  return primary?.hostname ? "replica" : "no primary";
}

/** One line for each node, for `hangar db status`. */
export function statusOf({ nodes, primary }: Survey): object[] {
  return nodes.map(({ hostname, info, problem }) => {
    if (!info) return { node: hostname, role: "unreachable", problem };
    const in_sync = primary?.ack ? info === primary || primary.ack.inSync.includes(info.node) : undefined;
    return {
      node: hostname,
      role: roleOf(info),
      term: info.term,
      lag_ms: info.isPrimary ? 0 : Math.round(info.lagMs),
      behind: primary && info !== primary ? behind(info, primary) : 0,
      ...(in_sync === undefined ? {} : { in_sync }),
      databases: info.databases,
      problems: info.states,
    };
  });
}
