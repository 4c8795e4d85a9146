import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "#core/bus.ts";
import { fail } from "#core/errors.ts";
import type { PageRequest } from "#core/list-page.ts";
import { type MachineUpdate, topics } from "../lifecycle/writer.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { MachineStore } from "../store.ts";
import type { LoggedEvent } from "../types.ts";

/** The owner of the events: an organization, or one of its apps. */
export interface EventScope {
  org_id: string;
  app_id?: string;
}

/** Reads event logs: per machine, and as streams with a cursor. */
export class Events {
  readonly #parts: { store: MachineStore; bus: Bus<MachineUpdate> };

  constructor(parts: { store: MachineStore; bus: Bus<MachineUpdate> }) {
    this.#parts = parts;
  }

  /** Events of one machine, newest first, optionally only those after `from_event_id`. */
  async list(
    machine_id: string,
    page: PageRequest<readonly [seq: number]> & { from_event_id?: string | undefined },
  ): Promise<LoggedEvent[]> {
    const { store } = this.#parts;
    const older = { limit: page.limit, ...(page.after ? { before: page.after[0] } : {}) };
    if (page.from_event_id === undefined) return await store.events(machine_id, older);
    const after = await store.eventSeq(machine_id, page.from_event_id);
    if (after === undefined) {
      fail("invalid_request", "query.from_event_id is not an event of this machine", {
        details: [{ path: "query.from_event_id", problem: "is not an event of this machine" }],
      });
    }
    return await store.events(machine_id, { ...older, after });
  }

  /** One page of the log, oldest first. */
  async page(scope: EventScope, after: number, limit: number): Promise<LoggedEvent[]> {
    return (await this.#parts.store.log({ ...scope, after, limit })).events;
  }

  async end(org_id: string): Promise<number> {
    return await this.#parts.store.logEnd(org_id);
  }

  /** Where the newest `events` of the log begin. */
  async tail(scope: EventScope, events: number): Promise<number> {
    return await this.#parts.store.logTail(scope, events);
  }

  /**
   * Streams every event after the cursor, in order and without duplicates. The bus only wakes the reader; events are
   * read from the store, so a reader that was slow misses none.
   */
  async *follow(scope: EventScope, after: number, signal: AbortSignal): AsyncGenerator<LoggedEvent[]> {
    let cursor = after;
    let woken = Promise.withResolvers<void>();
    const end = this.#parts.bus.subscribe(topics.org(scope.org_id), () => woken.resolve());
    const stop = (): void => woken.resolve();
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        const wake = woken.promise;
        const { events, behind } = await this.#parts.store.log({
          ...scope,
          after: cursor,
          limit: MACHINE_LIMITS.events_page,
        });
        cursor = events.at(-1)?.seq ?? cursor;
        if (events.length > 0) {
          yield events;
          continue;
        }
        // The bus has notified already: what holds the rest up need not be a change of this organization.
        await (behind ? Promise.race([wake, delay(MACHINE_LIMITS.events_behind_ms)]) : wake);
        woken = Promise.withResolvers<void>();
        if (signal.aborted) woken.resolve();
      }
    } finally {
      end();
      signal.removeEventListener("abort", stop);
    }
  }
}
