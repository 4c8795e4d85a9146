import type { HostStore } from "#hosts/store.ts";
import type { Host } from "#hosts/types.ts";
import type { Database, Step } from "../database.ts";

const HOST = "id, region, zone, cpus, memory_mb, state, used_cpus, used_memory_mb";

export function sqlHostStore(database: Database): HostStore {
  return {
    hosts: () => database.read<Host>(`SELECT ${HOST} FROM hosts ORDER BY id`),
    async declare(hosts) {
      const marks = hosts.map(() => "?").join(", ");
      await database.write([
        {
          sql: `DELETE FROM hosts WHERE id NOT IN (${marks}) AND NOT EXISTS (SELECT 1 FROM machines m WHERE m.host_id = hosts.id)
                AND NOT EXISTS (SELECT 1 FROM volumes v WHERE v.host_id = hosts.id)`,
          args: hosts.map((host) => host.id),
        },
        ...hosts.map(
          ({ id, region, zone, cpus, memory_mb }): Step => ({
            sql: `INSERT INTO hosts (${HOST}) VALUES (?, ?, ?, ?, ?, 'ok', 0, 0) ON CONFLICT (id) DO UPDATE
                  SET region = excluded.region, zone = excluded.zone, cpus = excluded.cpus, memory_mb = excluded.memory_mb`,
            args: [id, region, zone, cpus, memory_mb],
          }),
        ),
        {
          sql: `UPDATE hosts SET
                  used_cpus = (SELECT coalesce(sum(m.cpus), 0) FROM machines m WHERE m.host_id = hosts.id AND m.reserved = 1),
                  used_memory_mb = (SELECT coalesce(sum(m.memory_mb), 0) FROM machines m WHERE m.host_id = hosts.id AND m.reserved = 1)`,
        },
      ]);
    },
    async setState(id, state) {
      return (await database.write([{ sql: "UPDATE hosts SET state = ? WHERE id = ?", args: [state, id], rows: 1 }]))
        .ok;
    },
  };
}
