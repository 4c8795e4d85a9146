import { randomBytes } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import type { NotificationChannel, Notifier } from "#core/notifier.ts";
import { parsePostgresUrl } from "#core/postgres-url.ts";
import { Connector, type PostgresConnection } from "./connection.ts";
import { deadlineIn } from "./deadline.ts";
import { type Statement, statement, unnamed } from "./statements.ts";
import { storeError, troubleOf } from "./trouble.ts";

const NAME = "hangar";

/**
 * LISTEN and NOTIFY on a dedicated connection, which is probed when idle. Notifications are sent after the write, not
 * in it: NOTIFY serializes commits. A process killed between the two loses a notification, which receivers find by
 * polling.
 */
export async function openPostgresNotifier(url: string, parts: { clock: Clock; log: Log }): Promise<Notifier> {
  const wire = new PostgresNotifier(url, parts);
  const began = performance.now();
  try {
    await wire.connect();
  } catch (thrown) {
    // As for every other call: a start waits for an unreachable database, or fails with one line.
    throw storeError(thrown, troubleOf(thrown), performance.now() - began);
  }
  return wire;
}

class PostgresNotifier implements Notifier {
  readonly #connector: Connector;
  readonly #parts: { clock: Clock; log: Log };
  /** Identifies this process, so that it ignores its own notifications. */
  readonly #self = randomBytes(6).toString("hex");
  readonly #listeners = new Map<NotificationChannel, Set<(message: string) => void>>();
  readonly #gaps = new Set<() => void>();
  readonly #closing = new AbortController();
  #connection: PostgresConnection | undefined;
  #waiting: string[] = [];
  #sending = false;

  constructor(url: string, parts: { clock: Clock; log: Log }) {
    this.#connector = new Connector(parsePostgresUrl(url), "hangar wire");
    this.#parts = parts;
  }

  send(channel: NotificationChannel, message: string): void {
    // While the database is unreachable the queue fills up; receivers poll anyway.
    if (this.#waiting.length >= LIMITS.notify_waiting) return;
    this.#waiting.push(`${this.#self} ${channel} ${message}`);
    if (!this.#sending) void this.#sendAll();
  }

  listen(channel: NotificationChannel, listener: (message: string) => void): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  onGap(listener: () => void): () => void {
    this.#gaps.add(listener);
    return () => void this.#gaps.delete(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
  }

  async connect(): Promise<void> {
    const deadline = deadlineIn(LIMITS.notify_connect_ms);
    const connection = await this.#connector.connect(deadline);
    connection.onNotification((payload) => this.#hear(payload));
    try {
      await connection.run([unnamed(statement(`LISTEN ${NAME}`))], deadline);
      // Closed meanwhile: the new connection would leak.
      this.#closing.signal.throwIfAborted();
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
    connection.onBroken = () => this.#lost(connection);
    this.#connection = connection;
    void this.#watch(connection);
  }

  /** A dead connection reports nothing; a probe without a response closes it. */
  async #watch(connection: PostgresConnection): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted && !connection.broken) {
      await clock.sleep(LIMITS.notify_probe_ms, signal).catch(() => {});
      if (!signal.aborted && !connection.broken && !connection.fresh) await this.#run([], connection).catch(() => {});
    }
  }

  async #run(statements: readonly Statement[], connection: PostgresConnection): Promise<void> {
    await connection.run(statements, deadlineIn(LIMITS.notify_connect_ms));
  }

  /** Sends all waiting notifications in one statement. What fails is lost; the gap handler covers it. */
  async #sendAll(): Promise<void> {
    this.#sending = true;
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0 && this.#connection) {
        const messages = this.#waiting.splice(0, LIMITS.notify_batch);
        await this.#run(
          messages.map((message) => unnamed(statement("SELECT pg_notify(?, ?)", [NAME, message]))),
          this.#connection,
        );
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#parts.log.warn({ error }, "notifications could not be sent");
    } finally {
      this.#sending = false;
    }
  }

  #hear(payload: string): void {
    const [from, channel, ...message] = payload.split(" ");
    if (from === this.#self) return;
    for (const listener of this.#listeners.get(channel as NotificationChannel) ?? []) {
      try {
        listener(message.join(" "));
      } catch (error) {
        this.#parts.log.error({ error }, "a listener on the wire failed");
      }
    }
  }

  #lost(connection: PostgresConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    void this.#comeBack();
  }

  async #comeBack(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    log.warn({}, "the database can no longer be listened to; trying again");
    while (!signal.aborted) {
      try {
        await this.connect();
        for (const gap of this.#gaps) gap();
        if (!this.#sending) void this.#sendAll();
        return;
      } catch {
        await clock.sleep(LIMITS.notify_retry_ms, signal).catch(() => {});
      }
    }
  }
}
