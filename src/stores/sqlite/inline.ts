import { DatabaseSync } from "node:sqlite";
import { assert } from "#core/assert.ts";
import type { Database, Outcome, Step, Value } from "../database.ts";
import { commitGroup, Statements } from "./commit.ts";

/**
 * The same database without a thread: calls are synchronous. For deterministic simulations and tests that interpose
 * between statements. In memory by default.
 */
export function inlineSqlite(
  db: DatabaseSync = new DatabaseSync(":memory:", { enableForeignKeyConstraints: true }),
): Database {
  const statements = new Statements(db);
  return {
    read: async <Row>(sql: string, args: readonly Value[] = []) => statements.get(sql).all(...args) as Row[],
    async write(steps: readonly Step[]): Promise<Outcome> {
      const [verdict] = commitGroup(db, statements, [steps]);
      assert(verdict, "one write, one verdict");
      if ("error" in verdict) throw verdict.error;
      return verdict.outcome;
    },
    async *snapshot(tables) {
      // All rows at once, because others write while the consumer iterates.
      yield* tables.flatMap((table) =>
        db
          .prepare(`SELECT * FROM ${table}`)
          .all()
          .map((row) => ({ table, row: row as Record<string, Value> })),
      );
    },
    close: async () => db.close(),
  };
}
