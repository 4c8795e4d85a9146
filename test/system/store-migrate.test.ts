/** A migration that is killed, before or after any of its statements, is completed by the next start. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, suite, type TestContext, test } from "node:test";
import type { Database } from "#stores/database.ts";
import { migrate } from "#stores/migrate.ts";
import { MIGRATIONS } from "#stores/migrations.ts";
import { openPostgres } from "#stores/postgres/database.ts";
import { openSqlite } from "#stores/sqlite/database.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { runs, tempDir } from "../support.ts";
import { startProgram } from "./child.ts";

const STATEMENTS = MIGRATIONS.reduce((sum, { statements }) => sum + statements.length, 0);
/** Every point in a proof. At a push every so-manieth: odd, so that points before and after statements take turns. */
const STRIDE = runs(29, 3, 1);

interface Subject {
  /** Where a new, empty database is. */
  place(): Promise<string>;
  open(place: string): Promise<Database>;
  /** Statements that say everything about the tables there are. */
  describe: readonly string[];
}

/** What the tables look like after an undisturbed start, or after one that follows a kill. */
async function migrated(subject: Subject, place: string): Promise<unknown[]> {
  const database = await subject.open(place);
  try {
    await migrate(database);
    return await Promise.all(subject.describe.map((sql) => database.read(sql)));
  } finally {
    await database.close();
  }
}

async function killEverywhere(t: TestContext, subject: Subject): Promise<void> {
  const undisturbed = await migrated(subject, await subject.place());
  assert.equal((undisturbed.at(-1) as unknown[]).length, MIGRATIONS.length);
  let point = 0;
  for (let ended = false; !ended; point += STRIDE) {
    const place = await subject.place();
    const child = startProgram(t, "test/system/store/migrator.ts", [place, String(point)]);
    const { code, signal } = await child.ended;
    ended = code === 0;
    if (!ended) assert.equal(signal, "SIGKILL", child.complaints);
    assert.deepEqual(await migrated(subject, place), undisturbed, `killed at point ${point}`);
  }
  const kills = point / STRIDE - 1;
  t.diagnostic(`${kills} kills around ${STATEMENTS} statements of ${MIGRATIONS.length} migrations`);
  assert.ok(kills * STRIDE >= 2 * STATEMENTS, "every statement has a point before and after it");
}

suite("interrupted migration", () => {
  let server: ReturnType<typeof startPostgres> | undefined;
  after(async () => await (await server)?.stop());

  test("a migration of SQLite killed at any statement continues at the next start (S6)", async (t) => {
    const dir = tempDir();
    let files = 0;
    await killEverywhere(t, {
      place: async () => join(dir, `${++files}.db`),
      open: (place) => openSqlite(place),
      describe: ["SELECT type, name, sql FROM sqlite_master ORDER BY type, name", "SELECT * FROM migrations"],
    });
  });

  test("a migration of PostgreSQL killed at any statement continues at the next start (S6)", {
    skip: postgresMissing(),
  }, async (t) => {
    server ??= startPostgres();
    const url = await (await server).database();
    await killEverywhere(t, {
      // Emptied instead of made anew, which takes a tenth of the time.
      async place() {
        const database = await openPostgres(url);
        await database.write([{ sql: "DROP SCHEMA public CASCADE" }, { sql: "CREATE SCHEMA public" }]);
        await database.close();
        return url;
      },
      open: openPostgres,
      describe: [
        `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
         WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`,
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
        "SELECT * FROM migrations",
      ],
    });
  });
});
