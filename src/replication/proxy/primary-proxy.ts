/** Finds the address of the primary's proxy, which nodes report in /info. */

import type { ReplicationNode } from "../node/node.ts";
import { NodeClient } from "../node-client.ts";

export class PrimaryProxy {
  readonly #node: ReplicationNode;
  #known: { primary: string; url: URL } | undefined;
  #pending: Promise<URL | string> | undefined;

  constructor(node: ReplicationNode) {
    this.#node = node;
  }

  /** The primary's proxy URL, or why there is none. */
  async find(): Promise<URL | string> {
    const { role } = this.#node;
    if (role.kind !== "replica") return "no node is primary now";
    const { primary } = role;
    if (this.#known?.primary === primary) return this.#known.url;
    // Concurrent requests share one query.
    this.#pending ??= this.#query(primary).finally(() => {
      this.#pending = undefined;
    });
    return await this.#pending;
  }

  async #query(primary: string): Promise<URL | string> {
    try {
      const info = (await new NodeClient(primary, this.#node.clock).info()) as { proxy?: string; isPrimary?: boolean };
      if (info.proxy === undefined) return `the primary at ${primary} runs no proxy: start it with --proxy-listen`;
      const url = new URL(info.proxy);
      if (info.isPrimary) this.#known = { primary, url };
      return info.isPrimary ? url : `${primary} is not the primary`;
    } catch (error) {
      return `the primary at ${primary} does not respond: ${String(error)}`;
    }
  }

  /** Forgets the address, because it was unreachable. */
  forget(): void {
    this.#known = undefined;
  }
}
