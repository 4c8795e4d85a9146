/** Settings of the database. */
import { messageOf } from "./assert.ts";
import { parsePostgresUrl } from "./postgres-url.ts";
import { between, type Given, SettingsError } from "./setting-values.ts";

export const DATABASE_SETTINGS = {
  database_url: {
    default: "",
    words:
      "`postgres://…` to keep state in PostgreSQL; SQLite in the data dir otherwise. Several hosts with commas between " +
      "them: the one that accepts writes is used.",
  },
  database_connections: {
    default: "10",
    words: "Connections of this process to PostgreSQL at most, 1 to 500; up to two more listen and renew leases.",
  },
} as const;

export interface DatabaseSetting {
  database_url: string | undefined;
  database_connections: number;
}

export function databaseSettings(given: (name: keyof typeof DATABASE_SETTINGS) => Given): DatabaseSetting {
  const { value, from } = given("database_url");
  return {
    database_url: value === "" ? undefined : checkedUrl(value, from),
    database_connections: between(given("database_connections"), "database_connections", 1, 500),
  };
}

function checkedUrl(value: string, from: string): string {
  try {
    parsePostgresUrl(value);
  } catch (thrown) {
    throw new SettingsError(`${from}: ${messageOf(thrown)}`);
  }
  return value;
}
