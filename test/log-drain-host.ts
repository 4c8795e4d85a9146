/** A host whose machines' logs are sent to drains: real log files, positions and requests, and a store in memory. */
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import type { Clock } from "#core/clock.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { logHost, logLine } from "#drivers/runtime/runc/logs/fixtures.ts";
import { DiskLogQueue } from "#drivers/runtime/runc/logs/queue.ts";
import { LogDrains, sealName } from "#machines/logs/drains/drains.ts";
import { DrainSender } from "#machines/logs/drains/sender.ts";
import type { DrainStore } from "#machines/logs/drains/store.ts";
import type { Drain, DrainKind, DrainState, DrainTarget } from "#machines/logs/drains/types.ts";
import type { Machine } from "#machines/types.ts";

/** Stores drains and states for one process. */
export function memoryStore(
  drains: readonly Drain[],
): DrainStore & { state(id: string, host_id?: string): DrainState | undefined } {
  const states = new Map<string, DrainState>();
  const keyOf = (drain_id: string, host_id: string): string => `${drain_id} ${host_id}`;
  return {
    drains: async () => [...drains],
    insert: async () => false,
    delete: async () => false,
    states: async () => [...states.values()],
    hostStates: async (host_id) => [...states.values()].filter((state) => state.host_id === host_id),
    async putState(state) {
      states.set(keyOf(state.drain_id, state.host_id), state);
      return true;
    },
    state: (id, host_id = "h1") => states.get(keyOf(id, host_id)),
  };
}

interface Wanted {
  kind: DrainKind;
  target: Partial<DrainTarget> & { url: string };
  since?: number;
}

const sealer = new Sealer(randomBytes(32));

/** A drain of organization o1. */
export const aDrain = ({ kind, target, since = 0 }: Wanted, id = "d1"): Drain => ({
  id,
  org_id: "o1",
  app_id: null,
  kind,
  target: sealer.seal(sealName(id), JSON.stringify({ headers: {}, ...target })),
  address: target.url,
  since,
  created_at: 0,
  token_id: "t1",
});

export interface DrainHostOptions {
  host?: ReturnType<typeof logHost>;
  clock?: Clock;
  /** Whether the drains may reach private addresses, as those of operators may. */
  trusted?: boolean;
  /** Of several hosts, which one, and what they share. */
  host_id?: string;
  store?: ReturnType<typeof memoryStore>;
}

export function drainHost(drains: readonly Drain[], options: DrainHostOptions = {}) {
  const { host = logHost(), clock = systemClock, trusted = true, host_id = "h1" } = options;
  const queue = new DiskLogQueue(host.layout, () => {});
  const store = options.store ?? memoryStore(drains);
  const sending = new LogDrains({
    store,
    machines: { find: async (id) => aMachine(id) },
    queue,
    sender: new DrainSender([]),
    sealer,
    tokens: { fallen: async () => undefined, isFullAccess: async () => trusted },
    host_id,
    clock,
    log: silentLog,
  });
  return {
    host,
    queue,
    store,
    sending,
    /** Appends lines to a machine's log, one for each message. */
    write(id: string, messages: readonly string[], at: (index: number) => number = () => systemClock.now()): void {
      const text = messages.map((message, index) => logLine(at(index), message)).join("");
      appendFileSync(host.machine(id).log, text);
    },
  };
}

const aMachine = (id: string): Machine =>
  ({ id, name: `${id}-name`, org_id: "o1", app_id: "a1", app_name: "web", region: "lab" }) as Machine;
