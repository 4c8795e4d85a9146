import pg from "pg";
import { type Address, Endpoint } from "#core/dial.ts";
import type { Log } from "#core/log.ts";
import { BUILTIN_LIMITS } from "./limits.ts";
import { type PostgresQuery, queriesFor } from "./postgres-queries.ts";
import type { BuiltinSample, Machines, MeasuredMachine, SampleProvider } from "./sources.ts";

/** Login of a machine's database. */
export interface PostgresLogin extends Address {
  user: string;
  password: string;
}

interface Parts {
  machines: Machines;
  log: Log;
  /** Undefined when the machine's app has no password for it. */
  login(machine: MeasuredMachine, port: number): Promise<PostgresLogin | undefined>;
}

/** Column values: counts are text, because they may exceed a double. */
type Row = Record<string, string | number | null>;

interface Connection {
  boot: string;
  client: pg.Client;
  queries: readonly PostgresQuery[];
}

/**
 * Reads series of hosted databases over one persistent connection each. A database that does not respond affects only
 * its own series.
 */
export class PostgresReader {
  readonly #parts: Parts;
  readonly #connections = new Map<string, Connection>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  readonly read: SampleProvider = async () => {
    const machines = (await this.#parts.machines()).filter(({ postgres_port }) => postgres_port !== undefined);
    const known = new Set(machines.map(({ id }) => id));
    for (const id of this.#connections.keys()) if (!known.has(id)) await this.#leave(id);
    return (await Promise.all(machines.map((machine) => this.#readOne(machine)))).flat();
  };

  async close(): Promise<void> {
    await Promise.all([...this.#connections.keys()].map((id) => this.#leave(id)));
  }

  async #readOne(machine: MeasuredMachine): Promise<BuiltinSample[]> {
    try {
      const connection = await this.#connect(machine);
      if (!connection) return [];
      const samples: BuiltinSample[] = [];
      for (const question of connection.queries) {
        const { rows } = await connection.client.query<Row>(question.sql);
        for (const row of rows) samples.push(...samplesOf(machine, question, row));
      }
      return samples;
    } catch (error) {
      this.#parts.log.debug({ error, machine: machine.id }, "a hosted database did not answer");
      await this.#leave(machine.id);
      return [];
    }
  }

  async #connect(machine: MeasuredMachine): Promise<Connection | undefined> {
    const { id, boot, postgres_port = 5432 } = machine;
    const known = this.#connections.get(id);
    if (known?.boot === boot) return known;
    if (known) await this.#leave(id);
    const login = await this.#parts.login(machine, postgres_port);
    if (!login) return undefined;
    const client = await connected(login);
    try {
      const { rows } = await client.query<{ version: number }>(
        "SELECT current_setting('server_version_num')::int AS version",
      );
      const connection = { boot, client, queries: queriesFor(rows[0]?.version ?? 0) };
      this.#connections.set(id, connection);
      return connection;
    } catch (error) {
      // Not yet shared; the next round opens another.
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  async #leave(id: string): Promise<void> {
    const connection = this.#connections.get(id);
    this.#connections.delete(id);
    await connection?.client.end().catch(() => undefined);
  }
}

/** A connected client, at the address on which the database listens. */
async function connected(login: PostgresLogin): Promise<pg.Client> {
  let problem: unknown;
  for (const host of new Endpoint(login).hosts) {
    const client = clientOf({ ...login, host });
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      problem ??= error;
    }
  }
  throw problem;
}

function clientOf({ host, port, user, password }: PostgresLogin): pg.Client {
  const timeout = BUILTIN_LIMITS.postgres_ms;
  const client = new pg.Client({
    host,
    port,
    user,
    password,
    database: "postgres",
    application_name: "hangar metrics",
    connectionTimeoutMillis: timeout,
    query_timeout: timeout,
    statement_timeout: timeout,
  });
  // A connection that breaks while idle; the next round notices.
  client.on("error", () => undefined);
  return client;
}

function samplesOf(machine: MeasuredMachine, question: PostgresQuery, row: Row): BuiltinSample[] {
  const { org_id, app, region, host, instance } = machine;
  const own = question.labels.map((label): [string, string] => [label, String(row[label] ?? "")]);
  const labels = { app, region, host, instance, ...Object.fromEntries(own) };
  return Object.entries(row)
    .filter(([column, value]) => !question.labels.includes(column) && value !== null)
    .map(([column, value]) => ({ org_id, name: `${question.prefix}${column}`, labels, value: Number(value) }));
}
