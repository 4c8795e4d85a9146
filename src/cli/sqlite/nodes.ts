/** What the node in a machine says of itself at `/info`, through the platform's API: its port is private. */
import { messageOf } from "#core/assert.ts";
import { SQLITE_PORT } from "#core/sqlite-node.ts";
import { openLocalPort } from "../proxy/tunnel.ts";
import type { Context } from "../verb.ts";

export interface NodeInfo {
  primary: boolean;
  /** host:port of the primary that it follows. */
  follows: string | undefined;
  term: number;
  lag_ms: number;
  /** Position of each database, `txid/checksum`. */
  databases: Record<string, string>;
  /** Databases that it cannot use now. */
  problems: Record<string, { state: string; reason: string }>;
}

export interface NodeLine {
  machine_id: string;
  machine_name: string;
  group: string;
  dir: string;
  /** Null when it does not respond. */
  node: NodeInfo | null;
  /** Why there is none. */
  reason: string;
}

interface Answer {
  isPrimary: boolean;
  primary?: { hostname: string };
  term: number;
  lagMs: number;
  databases: Record<string, string>;
  states?: NodeInfo["problems"];
}

const ANSWER_MS = 5000;

export async function infoOf(
  context: Context,
  machine: { app_name: string; machine_id: string },
): Promise<Pick<NodeLine, "node" | "reason">> {
  try {
    const listen = { host: "127.0.0.1", port: 0 };
    // What goes wrong is in the table.
    const silent = { ...context, say: () => {} };
    const local = await openLocalPort(silent, { ...machine, port: SQLITE_PORT, listen });
    try {
      const url = `http://${local.host}:${local.port}/info`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
      const { isPrimary, primary, term, lagMs, databases, states = {} } = (await answer.json()) as Answer;
      const follows = isPrimary || primary?.hostname === "" ? undefined : primary?.hostname;
      const lag_ms = isPrimary ? 0 : Math.round(lagMs);
      return { node: { primary: isPrimary, follows, term, lag_ms, databases, problems: states }, reason: "" };
    } finally {
      await local.close();
    }
  } catch (thrown) {
    return { node: null, reason: messageOf(thrown) };
  }
}

export const roleText = ({ primary, follows }: NodeInfo): string =>
  primary ? "primary" : follows === undefined ? "no primary" : "replica";
