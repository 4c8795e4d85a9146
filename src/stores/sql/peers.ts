import type { Peer, PeerStore } from "#network/fabric.ts";
import type { Database } from "../database.ts";

export function sqlPeerStore(database: Database): PeerStore {
  return {
    async peers() {
      const rows = await database.read<Peer>("SELECT node_id, underlay, seen_at FROM network_peers ORDER BY node_id");
      return rows.map((row) => ({ ...row }));
    },
    async announce({ node_id, underlay, seen_at }, forget_before) {
      await database.write([
        { sql: "DELETE FROM network_peers WHERE seen_at < ?", args: [forget_before] },
        {
          sql: `INSERT INTO network_peers (node_id, underlay, seen_at) VALUES (?, ?, ?)
                ON CONFLICT (node_id) DO UPDATE SET underlay = excluded.underlay, seen_at = excluded.seen_at`,
          args: [node_id, underlay, seen_at],
        },
      ]);
    },
  };
}
