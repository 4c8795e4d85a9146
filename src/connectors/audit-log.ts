/**
 * Usage counters and the audit log of connectors. Entries of calls are written in batches, a moment later; entries of
 * changes are written with the change.
 */
import type { Clock } from "#core/clock.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import type { ConnectorStore } from "./store.ts";
import type { AuditEntry, Connection, Usage } from "./types.ts";

type Counts = Partial<Omit<Usage, "connection_id" | "last_used_at">>;

export class AuditLog {
  readonly #parts: { store: ConnectorStore; clock: Clock; log: Log };
  readonly #ids: Ids;
  #waiting: AuditEntry[] = [];
  #counted = new Map<string, Usage>();
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** Entries dropped because too many were waiting. */
  dropped = 0;

  constructor(parts: { store: ConnectorStore; clock: Clock; log: Log }) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
  }

  /** An entry for a change, or for `add`. */
  entry(
    connection: Pick<Connection, "id" | "org_id">,
    action: AuditEntry["action"],
    actor: string,
    more: Partial<Pick<AuditEntry, "method" | "path" | "status" | "rule">> = {},
  ): AuditEntry {
    return {
      id: this.#ids.ulid(),
      org_id: connection.org_id,
      at: this.#parts.clock.now(),
      connection_id: connection.id,
      action,
      actor,
      method: null,
      path: null,
      status: null,
      rule: null,
      ...more,
    };
  }

  add(entry: AuditEntry, counts: Counts): void {
    if (this.#waiting.length < LIMITS.audit_waiting) this.#waiting.push(entry);
    else this.dropped++;
    const before = this.#counted.get(entry.connection_id) ?? nothing(entry.connection_id);
    this.#counted.set(entry.connection_id, {
      connection_id: entry.connection_id,
      calls: before.calls + (counts.calls ?? 0),
      denials: before.denials + (counts.denials ?? 0),
      failures: before.failures + (counts.failures ?? 0),
      bytes_sent: before.bytes_sent + (counts.bytes_sent ?? 0),
      bytes_received: before.bytes_received + (counts.bytes_received ?? 0),
      last_used_at: entry.action === "call" ? entry.at : before.last_used_at,
    });
    this.#timer ??= setTimeout(() => void this.flush(), LIMITS.audit_flush_ms).unref();
  }

  /** Resolves when all added entries are written or have failed. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    await this.#writing;
  }

  async #write(): Promise<void> {
    const entries = this.#waiting;
    const counted = [...this.#counted.values()];
    this.#waiting = [];
    this.#counted = new Map();
    try {
      for (let i = 0; i < entries.length || i === 0; i += LIMITS.audit_batch) {
        const batch = entries.slice(i, i + LIMITS.audit_batch);
        if (batch.length + counted.length > 0) await this.#parts.store.record(batch, i === 0 ? counted : []);
      }
    } catch (error) {
      this.dropped += entries.length;
      this.#parts.log.warn({ error, lines: entries.length }, "the connectors' audit log could not be written");
    }
  }
}

const nothing = (connection_id: string): Usage => ({
  connection_id,
  calls: 0,
  denials: 0,
  failures: 0,
  bytes_sent: 0,
  bytes_received: 0,
  last_used_at: null,
});
