/**
 * Migrates a database and kills itself at one statement: `migrator.ts FILE_OR_URL POINT`. Point 2n is right
 * before the n-th statement, 2n + 1 right after it. Past the last one it ends by itself.
 */
import { flushCompileCache } from "node:module";
import { Socket } from "node:net";
import { DatabaseSync } from "node:sqlite";
import type { Database } from "#stores/database.ts";
import { migrate } from "#stores/migrate.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { openConnection } from "#stores/sqlite/open.ts";

const [where = "", point = "0"] = process.argv.slice(2);
let passed = 0;

/** One of the points at which the process may end. */
function here(): void {
  if (passed++ === Number(point)) process.kill(process.pid, "SIGKILL");
}

/** Calls through, with a point on either side. */
function watched<Args extends unknown[], Result>(run: (...args: Args) => Result): (...args: Args) => Result {
  return (...args) => {
    here();
    const result = run(...args);
    if (!(result instanceof Promise)) here();
    return result instanceof Promise ? (result.finally(here) as Result) : result;
  };
}

class WatchedSqlite extends DatabaseSync {
  override exec(sql: string): void {
    watched(() => super.exec(sql))();
  }

  override prepare(sql: string): ReturnType<DatabaseSync["prepare"]> {
    const statement = super.prepare(sql);
    statement.run = watched(statement.run.bind(statement)) as typeof statement.run;
    statement.all = watched(statement.all.bind(statement)) as typeof statement.all;
    return statement;
  }
}

async function open(): Promise<Database> {
  if (!where.startsWith("postgres:")) {
    flushCompileCache(); // Otherwise done at an end that never comes.
    openConnection(where).close();
    return inlineSqlite(new WatchedSqlite(where));
  }
  const { default: pg } = await import("pg");
  const { openPostgres } = await import("#stores/postgres/database.ts");
  flushCompileCache();
  // A write goes out in one piece. Here its pieces go one by one, as over a network that breaks off between two of them.
  Socket.prototype.cork = () => {};
  const { prototype } = pg.Connection as unknown as { prototype: { execute(...args: unknown[]): unknown } };
  const { execute } = prototype;
  prototype.execute = function (...args) {
    return watched(execute.bind(this))(...args);
  };
  return await openPostgres(where);
}

const database = await open();
await migrate(database);
await database.close();
