/** A real PostgreSQL behind a TCP relay, and what tests of its failures do with it. */
import assert from "node:assert/strict";
import { after } from "node:test";
import pg from "pg";
import { ApiError } from "#core/errors.ts";
import { startPostgres } from "../../../test/postgres.ts";
import { type Relay, startRelay } from "../../../test/relay.ts";
import type { Database } from "../database.ts";
import { openPostgres } from "./database.ts";

export const CALL_MS = 1500;

let server: ReturnType<typeof startPostgres> | undefined;
after(async () => await (await server)?.stop());

export interface Scene extends AsyncDisposable {
  relay: Relay;
  database: Database;
  /** A session of another client, without the relay. */
  other: pg.Client;
  /** How it reached the server. */
  client: { host: string; database: string; user: string };
}

export async function scene(options: Parameters<typeof openPostgres>[1] = { call_ms: CALL_MS }): Promise<Scene> {
  server ??= startPostgres();
  const url = new URL((await (await server).database()).replace("@/", "@localhost/"));
  const folder = url.searchParams.get("host") ?? assert.fail("the test server has a socket");
  const relay = await startRelay(`${folder}/.s.PGSQL.5432`);
  const name = url.pathname.slice(1);
  const client = { host: folder, database: name, user: "hangar" };
  const other = new pg.Client(client);
  other.on("error", () => {});
  await other.connect();
  const database = await openPostgres(`postgres://hangar@127.0.0.1:${relay.port}/${name}`, options);
  await database.write([{ sql: "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL)" }]);
  return {
    relay,
    database,
    other,
    client,
    async [Symbol.asyncDispose]() {
      await database.close();
      await other.end();
      await relay.close();
    },
  };
}

export const add = (id: string, n = 0) => ({ sql: "INSERT INTO things (id, n) VALUES (?, ?)", args: [id, n], rows: 1 });
export const set = (id: string, n: number) => ({ sql: "UPDATE things SET n = ? WHERE id = ?", args: [n, id], rows: 1 });

/** What is there, as another client sees it. */
export async function idsOf(other: pg.Client): Promise<string[]> {
  const { rows } = await other.query<{ id: string }>("SELECT id FROM things ORDER BY id");
  return rows.map(({ id }) => id);
}

/** Duration and error of a failing call. */
export async function failing(work: () => Promise<unknown>): Promise<{ ms: number; error: ApiError }> {
  const began = performance.now();
  try {
    await work();
  } catch (thrown) {
    assert.ok(thrown instanceof ApiError, String(thrown));
    return { ms: performance.now() - began, error: thrown };
  }
  return assert.fail("it did not fail");
}

export async function waitUntilBlocked(other: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await other.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
    if (rows.length > 0) return;
  }
}
