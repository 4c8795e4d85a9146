import { REPLICATION_LIMITS } from "../limits.ts";
import type { NodeUpdate } from "./node-messages.ts";
import type { NodeMessage, NodeName, NodeState } from "./types.ts";

/**
 * Pending messages of a reader, bounded: only the last state per node and the last transaction per database are
 * buffered, with a count, and primary changes are limited.
 */
export class Outbox {
  readonly #now: () => number;
  readonly #waiting = new Map<string, NodeMessage>();
  readonly #changes = new Map<string, number>();
  readonly #databases = new Map<string, Set<string>>();
  /** The last message about a node, to skip duplicates. */
  readonly #sent = new Map<string, string>();
  #filled = Promise.withResolvers<void>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Resolves when there is a message, or when `wake` was called. */
  get filled(): Promise<void> {
    return this.#filled.promise;
  }

  wake(): void {
    this.#filled.resolve();
  }

  state(node: NodeName, state: NodeState | undefined, reason: string): void {
    const report = JSON.stringify([state, reason]);
    if (this.#sent.get(node.machine_id) === report) return;
    this.#sent.set(node.machine_id, report);
    this.#put(`node ${node.machine_id}`, { ...node, type: "node", state: state ?? null, reason, ...this.#at() });
  }

  gone(node: NodeName): void {
    this.#sent.delete(node.machine_id);
    this.#waiting.delete(`node ${node.machine_id}`);
    this.#put(`gone ${node.machine_id}`, { ...node, type: "gone", ...this.#at() });
  }

  /** Throws when the node sends more than anyone could read. */
  news(node: NodeName, news: NodeUpdate): void {
    const { machine_id } = node;
    if (news.type === "primary") {
      const changes = (this.#changes.get(machine_id) ?? 0) + 1;
      if (changes > REPLICATION_LIMITS.observed_changes)
        throw new Error("it sends too many changes (observed_changes)");
      this.#changes.set(machine_id, changes);
      this.#put(`primary ${machine_id} ${changes}`, { ...node, ...news, ...this.#at() });
      return;
    }
    if (!this.#isShown(machine_id, news.db)) return;
    const key = `tx ${machine_id} ${news.db}`;
    const before = this.#waiting.get(key);
    const transactions = before?.type === "tx" ? before.transactions + 1 : 1;
    this.#put(key, { ...node, ...news, transactions, ...this.#at() });
  }

  take(): NodeMessage[] {
    const messages = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#changes.clear();
    this.#databases.clear();
    this.#filled = Promise.withResolvers<void>();
    return messages;
  }

  /** A node could invent any number of names between two messages. */
  #isShown(machine_id: string, db: string): boolean {
    const names = this.#databases.get(machine_id) ?? new Set();
    this.#databases.set(machine_id, names);
    if (names.size >= REPLICATION_LIMITS.observed_databases) return names.has(db);
    names.add(db);
    return true;
  }

  #at(): { timestamp: number } {
    return { timestamp: this.#now() };
  }

  #put(key: string, message: NodeMessage): void {
    this.#waiting.set(key, message);
    this.wake();
  }
}
