import { setTimeout as delay } from "node:timers/promises";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { EventFilter, LogPage, MachineStore } from "#machines/store.ts";
import type { Machine, MachineEvent } from "#machines/types.ts";
import { type Database, readOne, type Step, type Value } from "../database.ts";
import { type EventRow, toEvent } from "./machine-rows.ts";

const EVENT =
  "e.seq, e.id, e.type, e.status, e.source, e.timestamp, e.request, e.machine_id, m.name AS machine_name, m.app_name, e.instance_id";
const JOINED = "FROM machine_events e JOIN machines m ON m.id = e.machine_id";
const EVENTS = `SELECT ${EVENT} ${JOINED}`;
const COLUMNS = "org_id, seq, app_id, machine_id, instance_id, id, type, status, source, timestamp, request";

/** Positions per transaction number: the maximum number of events of one write. */
const PLACES = 1024;
/** Offset that makes new positions higher than all earlier ones, in this database or the one it was copied from. */
const BASE_KEY = "event_base";
const BASE = `coalesce((SELECT CAST(value AS BIGINT) FROM meta WHERE key = '${BASE_KEY}'), 0)`;
const placeOf = (transaction: string): string => `((${transaction} + ${BASE}) * ${PLACES})`;

/**
 * With concurrent writes, an event's position in the log derives from its transaction number, so that writes do not
 * wait for each other. Otherwise an organization's counter is the position.
 */
export function eventSteps(database: Database, machine: Machine, events: readonly MachineEvent[]): Step[] {
  const { transactions } = database;
  return transactions
    ? events.map((event, index) => ({
        sql: `INSERT INTO machine_events (${COLUMNS}) VALUES (?, ${placeOf(transactions.current)} + ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        args: [machine.org_id, index, ...valuesOf(machine, event)],
        rows: 1,
      }))
    : events.flatMap((event) => countedSteps(machine, event));
}

function countedSteps(machine: Machine, event: MachineEvent): Step[] {
  const { org_id } = machine;
  return [
    { sql: "UPDATE machine_counters SET events = events + 1 WHERE org_id = ?", args: [org_id], rows: 1 },
    {
      sql: `INSERT INTO machine_events (${COLUMNS})
            SELECT org_id, events, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM machine_counters WHERE org_id = ?`,
      args: [...valuesOf(machine, event), org_id],
      rows: 1,
    },
  ];
}

function valuesOf({ app_id, id: machine_id, instance_id }: Machine, event: MachineEvent): Value[] {
  const { id, type, status, source, timestamp, request } = event;
  const requestJson = request === undefined ? null : JSON.stringify(request);
  return [app_id, machine_id, instance_id, id, type, status, source, timestamp, requestJson];
}

type EventReads = Pick<MachineStore, "events" | "eventSeq" | "log" | "logEnd" | "logTail">;

export function eventReads(database: Database): EventReads {
  const { transactions } = database;
  /** All events with a lower position are visible. */
  const settled = transactions ? placeOf(transactions.settled) : undefined;
  return {
    async events(machine_id, { after = 0, before = Number.MAX_SAFE_INTEGER, limit }) {
      const sql = `${EVENTS} WHERE e.machine_id = ? AND e.seq > ? AND e.seq < ? ORDER BY e.seq DESC LIMIT ?`;
      return (await database.read<EventRow>(sql, [machine_id, after, before, limit])).map(toEvent);
    },
    async eventSeq(machine_id, event_id) {
      const sql = "SELECT seq FROM machine_events WHERE machine_id = ? AND id = ?";
      return (await readOne<{ seq: number }>(database, sql, [machine_id, event_id]))?.seq;
    },
    async log(filter) {
      const page = await untilSettled(() => readLog(database, filter, settled));
      if (page.behind) await transactions?.endStuck();
      return page;
    },
    async logEnd(org_id) {
      const sql = settled
        ? `SELECT ${settled} - 1 AS place`
        : "SELECT events AS place FROM machine_counters WHERE org_id = ?";
      return (await readOne<{ place: number }>(database, sql, settled ? [] : [org_id]))?.place ?? 0;
    },
    async logTail(scope, events) {
      const [condition, owner] = ownerOf(scope);
      const sql = `SELECT e.seq FROM machine_events e WHERE ${condition}${settled ? ` AND e.seq < ${settled}` : ""}
        ORDER BY e.seq DESC LIMIT 1 OFFSET ?`;
      return (await readOne<{ seq: number }>(database, sql, [owner, events]))?.seq ?? 0;
    },
  };
}

const ownerOf = ({ org_id, app_id }: Pick<EventFilter, "org_id" | "app_id">): [condition: string, owner: string] =>
  app_id === undefined ? ["e.org_id = ?", org_id] : ["e.app_id = ?", app_id];

async function readLog(
  database: Database,
  { after, limit, ...scope }: EventFilter,
  settled: string | undefined,
): Promise<LogPage> {
  const [condition, owner] = ownerOf(scope);
  const column = settled ? `, CASE WHEN e.seq < ${settled} THEN 1 ELSE 0 END AS settled` : ", 1 AS settled";
  const sql = `SELECT ${EVENT}${column} ${JOINED} WHERE ${condition} AND e.seq > ? ORDER BY e.seq LIMIT ?`;
  const rows = await database.read<EventRow & { settled: number }>(sql, [owner, after, limit]);
  const found = rows.map(({ settled: may_be_told, ...row }) => ({ may_be_told, event: toEvent(row) }));
  const first = found.findIndex(({ may_be_told }) => may_be_told === 0);
  const events = (first < 0 ? found : found.slice(0, first)).map(({ event }) => event);
  return { events, behind: first >= 0 };
}

/**
 * An event is published when no write in progress can precede it. Writes take milliseconds, so acknowledged events are
 * waited for; a hanging write delays the rest of the log and nothing else.
 */
async function untilSettled(read: () => Promise<LogPage>): Promise<LogPage> {
  const began = performance.now();
  for (let pause_ms = 1; ; pause_ms *= 2) {
    const page = await read();
    if (!page.behind || performance.now() - began + pause_ms > MACHINE_LIMITS.events_settle_ms) return page;
    await delay(pause_ms);
  }
}

/**
 * Ensures that new events come after all existing and published ones: at every start, because a restored or copied
 * database has other transaction numbers.
 */
export async function prepareEventLog(database: Database): Promise<void> {
  const { transactions } = database;
  if (!transactions) {
    await database.write([
      {
        sql: `UPDATE machine_counters SET events = max(events,
                coalesce((SELECT max(seq) FROM machine_events e WHERE e.org_id = machine_counters.org_id), 0),
                coalesce((SELECT max(position) FROM webhooks w WHERE w.org_id = machine_counters.org_id), 0))`,
      },
    ]);
    return;
  }
  const sql = `SELECT coalesce(max(place), 0) AS last, ${transactions.current} AS current, ${BASE} AS base FROM (
      SELECT (SELECT max(seq) FROM machine_events e WHERE e.org_id = o.id) AS place FROM orgs o
      UNION ALL SELECT max(position) AS place FROM webhooks) AS places`;
  const found = await readOne<{ last: number; current: number; base: number }>(database, sql);
  if (!found || found.last < (found.current + found.base) * PLACES) return;
  const base = Math.floor(found.last / PLACES) + 1 - found.current;
  await database.write([
    {
      sql: `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
            WHERE CAST(meta.value AS BIGINT) < CAST(excluded.value AS BIGINT)`,
      args: [BASE_KEY, String(base)],
    },
  ]);
}
