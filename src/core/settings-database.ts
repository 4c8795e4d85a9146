/** Settings of the database. */
import { messageOf } from "./assert.ts";
import { parsePostgresUrl } from "./postgres-url.ts";
import { between, type Given, SettingsError } from "./setting-values.ts";

export const DATABASE_SETTINGS = {
  database_url: {
    default: "",
    words:
      "URL of a PostgreSQL, `postgres://…`; default: SQLite in the data directory. With several comma-separated hosts, " +
      "the one that accepts writes is used.",
  },
  database_direct_url: {
    default: "",
    words:
      "URL of the same database that bypasses a pooler in transaction mode (PgBouncer), for LISTEN/NOTIFY and leases; " +
      "default: database_url.",
  },
  database_connections: {
    default: "10",
    words:
      "Maximum connections of this process to PostgreSQL, 1 to 500; up to two more are used for LISTEN and leases.",
  },
} as const;

export interface DatabaseSetting {
  database_url: string | undefined;
  /** For LISTEN connections and lease renewals. */
  database_direct_url: string | undefined;
  database_connections: number;
}

export function databaseSettings(given: (name: keyof typeof DATABASE_SETTINGS) => Given): DatabaseSetting {
  const database_url = checkedUrl(given("database_url"));
  const database_direct_url = checkedUrl(given("database_direct_url"));
  if (database_direct_url !== undefined && database_url === undefined)
    throw new SettingsError(`${given("database_direct_url").from}: it goes with --database postgres://…`);
  return {
    database_url,
    database_direct_url: database_direct_url ?? database_url,
    database_connections: between(given("database_connections"), "database_connections", 1, 500),
  };
}

function checkedUrl({ value, from }: Given): string | undefined {
  if (value === "") return undefined;
  try {
    parsePostgresUrl(value);
  } catch (thrown) {
    throw new SettingsError(`${from}: ${messageOf(thrown)}`);
  }
  return value;
}
