/**
 * Merges the events of the nodes of an organization's replicated databases for readers. Nodes are followed only while
 * there is a reader, by connections of each reader's own that end with it.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { type Address, Endpoint } from "#core/dial.ts";
import { fail } from "#core/errors.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { askNode, followNode, type NodeListener } from "./node-link.ts";
import { Outbox } from "./outbox.ts";
import type { NodeMessage, NodeName, ObservedNode } from "./types.ts";

export interface NodePlace extends NodeName {
  address: Address;
}

export interface ObserverParts {
  clock: Clock;
  /** Machines of an organization that run a node. */
  nodes(org_id: string): Promise<readonly NodePlace[]>;
}

const { observers, observed_nodes, observed_gather_ms, observed_find_ms } = REPLICATION_LIMITS;

export class Observer {
  readonly #parts: ObserverParts;
  #readers = 0;

  constructor(parts: ObserverParts) {
    this.#parts = parts;
  }

  /** The current state of every node. */
  async list(org_id: string, signal: AbortSignal): Promise<ObservedNode[]> {
    return await Promise.all(
      (await this.#find(org_id)).map(async ({ address, ...node }) => {
        try {
          return { ...node, state: await askNode(new Endpoint(address), signal), reason: "" };
        } catch (thrown) {
          return { ...node, state: null, reason: messageOf(thrown) };
        }
      }),
    );
  }

  /** Streams the state of every node, then changes. Refuses when there are too many readers. */
  follow(org_id: string, signal: AbortSignal): AsyncGenerator<NodeMessage[]> {
    if (this.#readers >= observers) fail("overloaded", `observers: ${observers} readers are connected`);
    this.#readers++;
    return this.#messages(org_id, signal);
  }

  async *#messages(org_id: string, signal: AbortSignal): AsyncGenerator<NodeMessage[]> {
    const { clock } = this.#parts;
    const ending = new AbortController();
    const both = AbortSignal.any([signal, ending.signal]);
    const outbox = new Outbox(() => clock.now());
    // Ends with the reader. Racing it each time would leak memory per message.
    const finding = this.#keepFinding(org_id, outbox, both).finally(() => outbox.wake());
    try {
      for (;;) {
        await outbox.filled;
        await clock.sleep(observed_gather_ms, both).catch(() => {});
        if (signal.aborted) return;
        yield outbox.take();
      }
    } finally {
      this.#readers--;
      ending.abort();
      await finding;
    }
  }

  /** Follows nodes as they come and go. */
  async #keepFinding(org_id: string, outbox: Outbox, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const followed = new Followed(outbox, clock, signal);
    while (!signal.aborted) {
      // Failures are retried.
      const found = await this.#find(org_id).catch(() => undefined);
      if (found && !signal.aborted) followed.be(found);
      await clock.sleep(observed_find_ms, signal).catch(() => {});
    }
  }

  async #find(org_id: string): Promise<readonly NodePlace[]> {
    return (await this.#parts.nodes(org_id)).slice(0, observed_nodes);
  }
}

/** The nodes that one reader follows. */
class Followed {
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #links = new Map<string, { name: NodeName; ending: AbortController }>();

  constructor(outbox: Outbox, clock: Clock, signal: AbortSignal) {
    this.#outbox = outbox;
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Follows exactly these nodes. */
  be(nodes: readonly NodePlace[]): void {
    const here = new Map(nodes.map((node) => [keyOf(node), node]));
    for (const [key, { name, ending }] of this.#links) {
      if (here.has(key)) continue;
      ending.abort();
      this.#links.delete(key);
      this.#outbox.gone(name);
    }
    for (const [key, node] of here) if (!this.#links.has(key)) this.#add(key, node);
  }

  #add(key: string, { address, ...name }: NodePlace): void {
    const ending = new AbortController();
    this.#links.set(key, { name, ending });
    const signal = AbortSignal.any([this.#signal, ending.signal]);
    const listener: NodeListener = {
      // A link may report once more after it was dropped.
      state: (state, reason) => signal.aborted || this.#outbox.state(name, state, reason),
      news: (news) => signal.aborted || this.#outbox.news(name, news),
    };
    void followNode(address, listener, { clock: this.#clock, signal });
  }
}

const keyOf = ({ machine_id, instance_id, address }: NodePlace): string =>
  `${machine_id} ${instance_id} ${address.host} ${address.port}`;
