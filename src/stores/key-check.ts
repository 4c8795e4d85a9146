import { assert } from "#core/assert.ts";
import type { Sealer } from "#core/sealer.ts";
import { DataDirError } from "./data-dir.ts";
import { type Database, readOne } from "./database.ts";

const KEY = "key_check";
const TEXT = "hangar";

/** Stores a check value of the master key, and refuses a start with another one. */
export async function checkKey(database: Database, sealer: Sealer): Promise<void> {
  await database.write([
    {
      sql: "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
      args: [KEY, sealer.seal(KEY, TEXT).toString("base64")],
    },
  ]);
  const row = await readOne<{ value: string }>(database, "SELECT value FROM meta WHERE key = ?", [KEY]);
  assert(row, "the key check was written before");
  try {
    sealer.open(KEY, Buffer.from(row.value, "base64"));
  } catch (cause) {
    throw new DataDirError(
      "the master key is not the one this database was sealed with; use the right HANGAR_MASTER_KEY or put its master.key into the data dir",
      { cause },
    );
  }
}
