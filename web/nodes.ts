/** The event stream of replicated database nodes, open while a page uses it. */
import { useEffect, useState } from "preact/hooks";
import type { NodeMessage, NodeState, ObservedNode } from "#client/db-nodes.ts";
import { again } from "./again.ts";
import { oncePerFrame } from "./frame.ts";
import { session } from "./session.ts";

const STREAM = "GET /v1/orgs/:org_slug/db_nodes";
const LINES_KEPT = 500;
const SECOND_MS = 1000;

/** One line of the feed; a database's transactions within a second are merged. */
export type FeedLine = NodeMessage & { key: string };

export interface Live {
  /** By the machine's version. */
  nodes: ReadonlyMap<string, ObservedNode>;
  /** Newest first. */
  feed: readonly FeedLine[];
  link: "connecting" | "live" | "broken";
}

const NOTHING: Live = { nodes: new Map(), feed: [], link: "connecting" };

/** Collects messages into the page's state. */
class Gathered {
  readonly nodes = new Map<string, ObservedNode>();
  feed: FeedLine[] = [];
  #lines = 0;

  take(message: NodeMessage): void {
    const node = this.nodes.get(message.instance_id);
    if (message.type === "node") this.#state(message, node);
    else if (message.type === "gone") this.nodes.delete(message.instance_id);
    else if (node?.state) this.nodes.set(message.instance_id, { ...node, state: changed(node.state, message) });
    if (message.type === "tx" && this.#joined(message)) return;
    // Node states go into the table; failures and recoveries also into the feed.
    if (message.type === "node" && message.state !== null && node?.state !== null) return;
    this.feed = [{ ...message, key: String(++this.#lines) }, ...this.feed].slice(0, LINES_KEPT);
  }

  #state({ state, reason, ...message }: NodeMessage & { type: "node" }, node: ObservedNode | undefined): void {
    const { app_name, machine_id, machine_name, instance_id } = message;
    const name = node ?? { app_name, machine_id, machine_name, instance_id };
    this.nodes.set(instance_id, { ...name, state, reason });
  }

  #joined(message: NodeMessage & { type: "tx" }): boolean {
    const second = Math.floor(message.timestamp / SECOND_MS);
    const index = this.feed.findIndex(
      (line) => line.type === "tx" && line.instance_id === message.instance_id && line.db === message.db,
    );
    const line = this.feed[index];
    if (line?.type !== "tx" || Math.floor(line.timestamp / SECOND_MS) !== second) return false;
    const transactions = line.transactions + message.transactions;
    this.feed = this.feed.with(index, { ...line, transactions, txid: message.txid });
    return true;
  }
}

function changed(state: NodeState, message: NodeMessage): NodeState {
  if (message.type === "tx") return { ...state, databases: { ...state.databases, [message.db]: message.txid } };
  return message.type === "primary" ? { ...state, primary: message.primary } : state;
}

/** The nodes of an organization and their events, from when the page is opened. */
export function useNodes(org_slug: string): Live {
  const [live, setLive] = useState(NOTHING);
  useEffect(() => {
    const ending = new AbortController();
    const gathered = new Gathered();
    let link: Live["link"] = "connecting";
    const drawing = oncePerFrame(() => setLive({ nodes: new Map(gathered.nodes), feed: gathered.feed, link }));
    const be = (next: Live["link"]): void => {
      link = next;
      drawing.ask();
    };
    const round = async (alive: () => void): Promise<void> => {
      const client = session.value?.client;
      if (!client) return;
      const input = { params: { org_slug }, signal: ending.signal };
      const messages = client.stream<typeof STREAM, NodeMessage>(STREAM, input, () => {
        // Node states are sent again; removed nodes are not.
        gathered.nodes.clear();
        be("live");
      });
      for await (const message of messages) {
        alive();
        gathered.take(message);
        drawing.ask();
      }
    };
    void again({ round, broken: () => be("broken") }, ending.signal).then((refused) => refused && be("broken"));
    return () => {
      ending.abort();
      drawing.stop();
    };
  }, [org_slug]);
  return live;
}
