import { takePrefetched } from "#core/prefetched.ts";
import type { NetworkStore } from "#machines/private-networks.ts";
import { type Database, readOne } from "../database.ts";

export function sqlNetworkStore(database: Database): NetworkStore {
  return {
    findNetwork: async (org_id, name) =>
      (await takePrefetched<{ prefix: string | null }>("network", `${org_id} ${name}`)) ??
      (await readOne(database, "SELECT prefix FROM private_networks WHERE org_id = ? AND name = ?", [org_id, name])),
    unkept: () => database.read("SELECT org_id, name FROM private_networks WHERE prefix IS NULL"),
    async keepPrefix(org_id, name, prefix) {
      const free = "NOT EXISTS (SELECT 1 FROM private_networks WHERE prefix = ?)";
      await database.write([
        {
          sql: `UPDATE private_networks SET prefix = ? WHERE org_id = ? AND name = ? AND prefix IS NULL AND ${free}`,
          args: [prefix, org_id, name, prefix],
        },
        {
          sql: `INSERT INTO private_networks (org_id, name, prefix) SELECT ?, ?, ? WHERE ${free} ON CONFLICT DO NOTHING`,
          args: [org_id, name, prefix, prefix],
        },
      ]);
    },
  };
}
