import type { Peer, PeerStore } from "#network/overlay.ts";
import type { Database } from "../database.ts";

export function sqlPeerStore(database: Database): PeerStore {
  return {
    async peers() {
      const rows = await database.read<Peer>(
        `SELECT network_peers.node_id, underlay, seen_at, block FROM network_peers
         LEFT JOIN network_blocks ON network_blocks.node_id = network_peers.node_id ORDER BY network_peers.node_id`,
      );
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
    async takeBlock(node_id, blocks) {
      const sql = `INSERT INTO network_blocks (node_id, block)
                   SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM network_blocks WHERE node_id = ?)
                   ON CONFLICT DO NOTHING`;
      for (;;) {
        const taken = await database.read<{ node_id: string; block: number }>(
          "SELECT node_id, block FROM network_blocks",
        );
        const own = taken.find((one) => one.node_id === node_id);
        if (own && blocks.includes(own.block)) return own.block;
        const free = blocks.find((block) => !taken.some((one) => one.block === block));
        if (free === undefined) return undefined;
        // Another process may have been faster: then it is read again.
        const before = {
          sql: "DELETE FROM network_blocks WHERE node_id = ? AND block = ?",
          args: [node_id, own?.block ?? -1],
        };
        await database.write([before, { sql, args: [node_id, free, node_id] }]);
      }
    },
  };
}
