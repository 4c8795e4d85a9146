/** What a PostgreSQL has used: what its processes take of a processor and of memory hardly depends on the box's other load. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { startPostgres } from "../../test/postgres.ts";

/** Use of the server and of one database since it was created. */
export interface Used {
  cpu_ms: number;
  commits: number;
  wal_bytes: number;
  sessions: number;
}

export class Postgres {
  readonly url: string;
  readonly #client: pg.Client;
  readonly #pid: number;

  private constructor(url: string, client: pg.Client) {
    this.url = url;
    this.#client = client;
    const folder = new URL(url.replace("@/", "@localhost/")).searchParams.get("host") ?? "";
    this.#pid = Number(readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[0]);
  }

  static async open(url: string): Promise<Postgres> {
    const client = new pg.Client(url);
    await client.connect();
    return new Postgres(url, client);
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async used(): Promise<Used> {
    const { rows } = await this.#client.query(
      `SELECT xact_commit::int AS commits, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal_bytes,
         (SELECT count(*)::int FROM pg_stat_activity WHERE application_name LIKE 'hangar%') AS sessions
       FROM pg_stat_database WHERE datname = current_database()`,
    );
    return { ...(rows[0] as Omit<Used, "cpu_ms">), cpu_ms: this.#cpuMs() };
  }

  /** Memory of all its processes, what they share counted once. */
  memoryKib(): number {
    return [this.#pid, ...this.#children()].reduce((sum, pid) => sum + proportionalKib(pid), 0);
  }

  /** Of the server and all its processes, also those that have ended. */
  #cpuMs(): number {
    const sessions = this.#children().reduce((sum, pid) => sum + (statOf(pid)?.own_ms ?? 0), 0);
    return (statOf(this.#pid)?.all_ms ?? 0) + sessions;
  }

  #children(): number[] {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return processes.map(Number).filter((pid) => statOf(pid)?.parent === this.#pid);
  }
}

/** Processor time of a process: its own, and with that of its children that have ended. */
export function statOf(pid: number): { parent: number; own_ms: number; all_ms: number } | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  if (stat === "") return undefined;
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [own = 0, children = 0] = [11, 13].map((at) => ((fields[at] ?? 0) + (fields[at + 1] ?? 0)) * 10);
  return { parent: fields[1] ?? 0, own_ms: own, all_ms: own + children };
}

const proportionalKib = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB/m.exec(textOf(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);

/** Empty for a process that has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** A server of its own, so that no part pays for another one. */
export async function onServer<Found>(work: (postgres: Postgres) => Promise<Found>): Promise<Found> {
  const server = await startPostgres({ fsync: true, max_connections: 400 });
  try {
    const postgres = await Postgres.open(await server.database());
    try {
      return await work(postgres);
    } finally {
      await postgres.close();
    }
  } finally {
    await server.stop();
  }
}

/** What `count` repetitions of `work` cost the server, each, and how many a second came of it. */
export async function costOf(
  postgres: Postgres,
  count: number,
  work: () => Promise<void>,
): Promise<{ cpu_ms: number; wal_bytes: number; per_second: number }> {
  const before = await postgres.used();
  const began = performance.now();
  await work();
  const per_second = (count * 1000) / (performance.now() - began);
  const after = await postgres.used();
  return {
    cpu_ms: (after.cpu_ms - before.cpu_ms) / count,
    wal_bytes: (after.wal_bytes - before.wal_bytes) / count,
    per_second,
  };
}
