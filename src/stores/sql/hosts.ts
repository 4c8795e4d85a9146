import { takePrefetched } from "#core/prefetched.ts";
import type { Arrival, HostStore, JoinToken } from "#hosts/store.ts";
import type { Host, HostFacts, Placing } from "#hosts/types.ts";
import { type Database, readOne, type Step, type Value } from "../database.ts";

const PLACING = "id, region, zone, cpus, memory_mb";
const HOST = `${PLACING}, state, used_cpus, used_memory_mb, cordoned, draining, node_id, epoch, beat, lease_ms, handled, held,
  address, facts, joined_at, seen_at`;
/** Actual usage, counted from the machines. */
const COUNT = `used_cpus = (SELECT coalesce(sum(m.cpus), 0) FROM machines m WHERE m.host_id = hosts.id AND m.reserved = 1),
  used_memory_mb = (SELECT coalesce(sum(m.memory_mb), 0) FROM machines m WHERE m.host_id = hosts.id AND m.reserved = 1)`;
const EMPTY = `NOT EXISTS (SELECT 1 FROM machines m WHERE m.host_id = hosts.id)
  AND NOT EXISTS (SELECT 1 FROM volumes v WHERE v.host_id = hosts.id)`;

export const HOSTS = `SELECT ${HOST} FROM hosts ORDER BY id`;

type Flag = "cordoned" | "draining" | "held";
type HostRow = Omit<Host, Flag | "facts"> & Record<Flag, number> & { facts: string };

const toHost = ({ cordoned, draining, held, facts, ...row }: HostRow): Host => ({
  ...row,
  cordoned: cordoned === 1,
  draining: draining === 1,
  held: held === 1,
  facts: JSON.parse(facts) as HostFacts,
});

export function sqlHostStore(database: Database): HostStore {
  const done = async (sql: string, args: readonly Value[]): Promise<boolean> =>
    (await database.write([{ sql, args, rows: 1 }])).ok;
  return {
    hosts: async () =>
      ((await takePrefetched<HostRow[]>("hosts", "all")) ?? (await database.read<HostRow>(HOSTS))).map(toHost),
    async find(id) {
      const row = await readOne<HostRow>(database, `SELECT ${HOST} FROM hosts WHERE id = ?`, [id]);
      return row && toHost(row);
    },
    declare: (hosts) => declare(database, hosts),
    // An operator's change also ends the tenure: a running host notices at its next renewal.
    setState: (id, state, held) =>
      done("UPDATE hosts SET state = ?, held = ?, epoch = epoch + 1 WHERE id = ?", [state, held ? 1 : 0, id]),
    setCordoned: (id, { cordoned, draining }) =>
      done("UPDATE hosts SET cordoned = ?, draining = ? WHERE id = ?", [cordoned ? 1 : 0, draining ? 1 : 0, id]),
    forget: (id) => done(`DELETE FROM hosts WHERE id = ? AND ${EMPTY}`, [id]),
    ...addresses(database),
    ...joining(database),
    ...tenures(database),
  };
}

async function declare(database: Database, hosts: readonly Placing[]): Promise<void> {
  const marks = hosts.map(() => "?").join(", ");
  await database.write([
    {
      sql: `DELETE FROM hosts WHERE joined_at = 0 AND lease_ms = 0 AND id NOT IN (${marks}) AND ${EMPTY}`,
      args: hosts.map((host) => host.id),
    },
    ...hosts.map(
      ({ id, region, zone, cpus, memory_mb }): Step => ({
        sql: `INSERT INTO hosts (${PLACING}, state, used_cpus, used_memory_mb) VALUES (?, ?, ?, ?, ?, 'ok', 0, 0)
              ON CONFLICT (id) DO UPDATE
              SET region = excluded.region, zone = excluded.zone, cpus = excluded.cpus, memory_mb = excluded.memory_mb`,
        args: [id, region, zone, cpus, memory_mb],
      }),
    ),
    ...hosts.map(({ id }): Step => ({ sql: `UPDATE hosts SET ${COUNT} WHERE id = ?`, args: [id] })),
  ]);
}

function addresses(database: Database): Pick<HostStore, "announce" | "channelAddressOf"> {
  return {
    async announce({ node_id, address, seen_at }) {
      const sql = `INSERT INTO processes (node_id, address, seen_at) VALUES (?, ?, ?)
                   ON CONFLICT (node_id) DO UPDATE SET address = excluded.address, seen_at = excluded.seen_at`;
      await database.write([{ sql, args: [node_id, address, seen_at] }]);
    },
    async channelAddressOf(node_id) {
      const sql = "SELECT address FROM processes WHERE node_id = ?";
      return (await readOne<{ address: string }>(database, sql, [node_id]))?.address;
    },
  };
}

function joining(database: Database): Pick<HostStore, "addToken" | "findToken" | "join"> {
  return {
    async addToken({ id, hash, sealed_key, expires_at }) {
      // A repeated Idempotency-Key creates the same token again.
      const sql = `INSERT INTO host_join_tokens (id, hash, sealed_key, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
                   SET hash = excluded.hash, sealed_key = excluded.sealed_key, expires_at = excluded.expires_at`;
      await database.write([
        { sql: "DELETE FROM host_join_tokens WHERE expires_at < ?", args: [expires_at - KEPT_MS] },
        { sql, args: [id, hash, sealed_key, expires_at] },
      ]);
    },
    findToken: (id) =>
      readOne<JoinToken>(database, "SELECT id, hash, sealed_key, expires_at FROM host_join_tokens WHERE id = ?", [id]),
    async join({ id, region, zone, cpus, memory_mb, node_id }, token_id, now) {
      const outcome = await database.write([
        { sql: "DELETE FROM host_join_tokens WHERE id = ?", args: [token_id], rows: 1 },
        {
          sql: `INSERT INTO hosts (${PLACING}, state, used_cpus, used_memory_mb, node_id, joined_at)
                VALUES (?, ?, ?, ?, ?, 'failed', 0, 0, ?, ?) ON CONFLICT (id) DO NOTHING`,
          args: [id, region, zone, cpus, memory_mb, node_id, now],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
  };
}

/** Expired tokens are deleted after this. */
const KEPT_MS = 24 * 3600 * 1000;

function tenures(database: Database): Pick<HostStore, "take" | "renew" | "leave" | "lose" | "handled"> {
  return {
    async take({ id, node_id }, after, { lease_ms, address, facts, now }: Arrival) {
      const outcome = await database.write([
        {
          sql: `UPDATE hosts SET epoch = epoch + 1, beat = beat + 1, state = 'ok', node_id = ?, lease_ms = ?, address = ?,
                facts = ?, seen_at = ?, ${COUNT}
                WHERE id = ? AND epoch = ? AND held = 0 AND (node_id = '' OR node_id = ?) RETURNING epoch`,
          args: [node_id, lease_ms, address, JSON.stringify(facts), now, id, after, node_id],
        },
      ]);
      const [row] = outcome.ok ? (outcome.returned[0] ?? []) : [];
      return row ? Number(row["epoch"]) : undefined;
    },
    async renew({ id, node_id, epoch }, now) {
      const sql = "UPDATE hosts SET beat = beat + 1, seen_at = ? WHERE id = ? AND node_id = ? AND epoch = ?";
      return (await database.write([{ sql, args: [now, id, node_id, epoch], rows: 1 }])).ok;
    },
    async leave({ id, node_id, epoch }, lease_ms, now) {
      const sql = `UPDATE hosts SET beat = beat + 1, lease_ms = ?, seen_at = ?
                   WHERE id = ? AND node_id = ? AND epoch = ? AND state = 'ok'`;
      return (await database.write([{ sql, args: [lease_ms, now, id, node_id, epoch], rows: 1 }])).ok;
    },
    async lose(id, beat) {
      const sql = "UPDATE hosts SET state = 'failed', epoch = epoch + 1 WHERE id = ? AND beat = ? AND state = 'ok'";
      return (await database.write([{ sql, args: [id, beat], rows: 1 }])).ok;
    },
    async handled(id, epoch) {
      await database.write([
        { sql: "UPDATE hosts SET handled = ? WHERE id = ? AND epoch = ?", args: [epoch, id, epoch] },
      ]);
    },
  };
}
