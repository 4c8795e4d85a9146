import type { Client } from "#client/client.ts";
import type { NodeMessage, NodeState, ObservedNode } from "#client/db-nodes.ts";
import { table } from "../output.ts";
import { print, printJsonLine } from "../terminal-text.ts";
import type { Result } from "../verb.ts";

export const NO_NODES =
  'no machine says that it runs a node: `hangar sqlite attach` makes them run one; others are known by their metrics: {"metrics": {"port": 20202, "path": "/metrics"}}';

const positions = (databases: Record<string, number>): string =>
  Object.entries(databases)
    .map(([name, txid]) => `${name} ${txid}`)
    .join(", ");

const withProblems = ({ databases, problems }: NodeState): string =>
  [positions(databases), ...Object.entries(problems).map(([name, { state, reason }]) => `${name} ${state}: ${reason}`)]
    .filter((text) => text !== "")
    .join("; ");

export const nodesText = (nodes: readonly ObservedNode[]): string =>
  table(
    ["app", "machine", "role", "term", "lag", "replicas", "databases"],
    nodes.map(({ app_name, machine_name, state, reason }) =>
      state
        ? [
            app_name,
            machine_name,
            state.primary ? "primary" : "replica",
            String(state.term),
            state.primary ? "-" : `${state.lag_ms} ms`,
            state.primary ? String(state.replicas) : "-",
            withProblems(state),
          ]
        : [app_name, machine_name, "unreachable", "", "", "", reason],
    ),
  );

/** Prints node events until interrupted. */
export async function followNodes(client: Client, params: { org_slug: string }, json: boolean): Promise<Result> {
  const messages = client.stream<"GET /v1/orgs/:org_slug/db_nodes", NodeMessage>("GET /v1/orgs/:org_slug/db_nodes", {
    params,
  });
  for await (const message of messages)
    if (json) printJsonLine(message);
    else print(messageText(message));
  return { data: null, text: "" };
}

function messageText(message: NodeMessage): string {
  const { timestamp, app_name, machine_name } = message;
  return `${new Date(timestamp).toISOString()}  ${app_name}/${machine_name}  ${what(message)}`;
}

function what(message: NodeMessage): string {
  switch (message.type) {
    case "tx":
      return `${message.db} at ${message.txid} (+${message.transactions})`;
    case "primary":
      return message.primary ? "is the primary" : `follows ${message.hostname ?? "no primary"}`;
    case "gone":
      return "is gone";
    case "node": {
      const { state, reason } = message;
      if (!state) return `does not respond: ${reason}`;
      return `${state.primary ? "primary" : `replica, ${state.lag_ms} ms behind`}, term ${state.term}, ${withProblems(state)}`;
    }
  }
}
