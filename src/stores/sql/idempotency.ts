import { assert } from "#core/assert.ts";
import type { IdempotencyEntry, IdempotencyStore } from "#http/idempotency.ts";
import { type Database, readOne } from "../database.ts";

const ENTRY = "key, fingerprint, seed, runner, started_at, answer";

export function sqlIdempotencyStore(database: Database): IdempotencyStore {
  return {
    async begin(entry, stale_before_ms) {
      const { key, fingerprint, seed, runner, started_at } = entry;
      const outcome = await database.write([
        {
          // A taken-over key keeps its seed and time: the second run generates the same ids.
          sql: `INSERT INTO idempotency (${ENTRY}) VALUES (?, ?, ?, ?, ?, NULL)
                ON CONFLICT (key) DO UPDATE SET runner = excluded.runner
                WHERE idempotency.answer IS NULL AND idempotency.fingerprint = excluded.fingerprint
                  AND (idempotency.runner = excluded.runner OR idempotency.started_at < ?)
                RETURNING ${ENTRY}`,
          args: [key, fingerprint, seed, runner, started_at, stale_before_ms],
        },
      ]);
      const taken = (outcome.ok ? outcome.returned[0]?.[0] : undefined) as IdempotencyEntry | undefined;
      if (taken) return taken;
      const held = await readOne<IdempotencyEntry>(database, `SELECT ${ENTRY} FROM idempotency WHERE key = ?`, [key]);
      // Deleted between the two statements: start again.
      return held ?? (await this.begin(entry, stale_before_ms));
    },

    async finish(key, answer) {
      const outcome = await database.write([
        { sql: "UPDATE idempotency SET answer = ? WHERE key = ?", args: [answer, key] },
      ]);
      assert(outcome.ok, "an unguarded write is not refused");
    },

    async forget(key) {
      await database.write([{ sql: "DELETE FROM idempotency WHERE key = ? AND answer IS NULL", args: [key] }]);
    },

    async expire(before_ms) {
      const outcome = await database.write([
        { sql: "DELETE FROM idempotency WHERE started_at < ? RETURNING key", args: [before_ms] },
      ]);
      return outcome.ok ? (outcome.returned[0]?.length ?? 0) : 0;
    },
  };
}
