import type { Bus, LocalBus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { type MachineUpdate, seenFrom, topics } from "../lifecycle/writer.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { MachineStore } from "../store.ts";
import type { Machine } from "../types.ts";

interface SharedParts {
  local: LocalBus<MachineUpdate>;
  notifier: Notifier;
  store: Pick<MachineStore, "find" | "changed">;
  clock: Clock;
  log: Log;
}

/** The NOTIFY payload: machine, revision, event ids and topics. */
interface Notification {
  id: string;
  revision: number;
  topics: string[];
  events: string[];
}

/**
 * Shares the bus between the processes on one database. Updates made here are published locally at once and sent to the
 * other processes as notifications; a received notification is published after the machine was read, and only if there
 * is a subscriber. Notifications may be lost (sender killed, connection down), so recent changes are polled and
 * unpublished ones are published then.
 */
export class SharedBus implements Bus<MachineUpdate> {
  readonly #parts: SharedParts;
  /** Newest revision published here, by machine, of recent changes. */
  readonly #published = new Map<string, { revision: number; at: number }>();
  /** Collects the topics of one change, so that it is sent as one notification. */
  readonly #outgoing = new Map<MachineUpdate, string[]>();
  /** Notifications waiting for their machine to be read; a second one of the same machine joins the first. */
  readonly #reading = new Map<string, Notification[]>();
  readonly #closing = new AbortController();
  readonly #ends: (() => void)[] = [];

  constructor(parts: SharedParts) {
    this.#parts = parts;
  }

  /** Number of local subscribers. */
  get listeners(): number {
    return this.#parts.local.listeners;
  }

  start(): void {
    const { notifier, clock, log } = this.#parts;
    const { signal } = this.#closing;
    this.#ends.push(
      notifier.listen("machines", (message) => this.#onNotification(JSON.parse(message) as Notification)),
    );
    const poll = (): Promise<void> =>
      this.#poll().catch((error: unknown) => log.warn({ error }, "changes of other processes could not be read"));
    this.#ends.push(notifier.onGap(() => void poll()));
    void (async () => {
      while (!signal.aborted) {
        await clock.sleep(MACHINE_LIMITS.bus_look_ms, signal).catch(() => {});
        if (!signal.aborted) await poll();
      }
    })();
  }

  close(): void {
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
  }

  publish(topic: string, message: MachineUpdate): void {
    this.#remember(message.machine);
    const topics = this.#outgoing.get(message);
    if (topics) topics.push(topic);
    else {
      this.#outgoing.set(message, [topic]);
      queueMicrotask(() => this.#send(message));
    }
    this.#parts.local.publish(topic, message);
  }

  subscribe(topic: string, listener: (message: MachineUpdate) => void): () => void {
    return this.#parts.local.subscribe(topic, listener);
  }

  #send(message: MachineUpdate): void {
    const topics = this.#outgoing.get(message) ?? [];
    this.#outgoing.delete(message);
    const { machine, events } = message;
    const notification: Notification = {
      id: machine.id,
      revision: machine.revision,
      topics,
      events: events.map(({ id }) => id),
    };
    this.#parts.notifier.send("machines", JSON.stringify(notification));
  }

  #onNotification(notification: Notification): void {
    if (!notification.topics.some((topic) => this.#parts.local.wants(topic))) return;
    const waiting = this.#reading.get(notification.id);
    if (waiting) {
      waiting.push(notification);
      return;
    }
    this.#reading.set(notification.id, [notification]);
    void this.#read(notification.id);
  }

  async #read(id: string): Promise<void> {
    const { store, log } = this.#parts;
    // Notifications that arrive from here on need a new read: this one may return older data.
    const begun = Promise.resolve().then(() => {
      const notifications = this.#reading.get(id) ?? [];
      this.#reading.delete(id);
      return notifications;
    });
    try {
      const notifications = await begun;
      const machine = await store.find(id);
      if (!machine) return;
      this.#remember(machine);
      for (const notification of notifications) this.#publish(machine, notification.topics, notification.events);
    } catch (error) {
      log.warn({ error, machine: id }, "a change of another process could not be read; retrying");
    }
  }

  #publish(machine: Machine, names: readonly string[], event_ids: readonly string[]): void {
    const events = machine.events.filter(({ id }) => event_ids.includes(id)).toReversed();
    for (const topic of names) this.#parts.local.publish(topic, { machine: seenFrom(topic, machine), events });
  }

  #remember({ id, revision }: Machine): void {
    const { clock } = this.#parts;
    if ((this.#published.get(id)?.revision ?? 0) < revision)
      this.#published.set(id, { revision, at: clock.monotonic() });
  }

  /** Publishes recent changes whose notification was lost. */
  async #poll(): Promise<void> {
    const { store, clock } = this.#parts;
    const oldest = clock.monotonic() - 2 * MACHINE_LIMITS.bus_lately_ms;
    for (const [id, { at }] of this.#published) if (at < oldest) this.#published.delete(id);
    for (const { id, revision } of await store.changed(clock.now() - MACHINE_LIMITS.bus_lately_ms)) {
      if ((this.#published.get(id)?.revision ?? 0) >= revision) continue;
      const machine = await store.find(id);
      if (!machine) continue;
      this.#remember(machine);
      const { host_id, org_id } = machine;
      this.#publish(machine, [topics.machine(id), topics.host(host_id), topics.every, topics.org(org_id)], []);
    }
  }
}
