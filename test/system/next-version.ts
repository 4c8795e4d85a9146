/** The platform as a later version of it would be: another change of the tables, and else all the same. */
import { MIGRATIONS } from "#stores/migrations.ts";
import type { Migration } from "#stores/released-migrations.ts";

const latest = MIGRATIONS.at(-1)?.id ?? 0;
(MIGRATIONS as Migration[]).push({
  id: latest + 1,
  name: "something that the version before knows nothing of",
  statements: [
    "ALTER TABLE machines ADD COLUMN later BIGINT NOT NULL DEFAULT 0",
    "CREATE TABLE later (id TEXT PRIMARY KEY)",
  ],
});
// With the arguments of this process, as if it had been started itself.
await import("../../src/main.ts");
