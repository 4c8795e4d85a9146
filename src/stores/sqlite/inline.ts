import { DatabaseSync } from "node:sqlite";
import { assert } from "#core/assert.ts";
import type { Database, Outcome, Step, Value } from "../database.ts";
import { commitGroup, Statements } from "./commit.ts";

/**
 * The same database without the thread: every call finishes before it returns. For simulations, where one
 * seed must give one run, and for tests that interpose between statements. In memory unless given one.
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
      // All of it at once, because others write while whoever asked looks at a row.
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
