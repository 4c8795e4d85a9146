/**
 * A PostgreSQL and its standby, which has at every moment whatever was acknowledged (synchronous streaming replication),
 * each on a small disk of its own. The primary can die and the standby take its place, again and again.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, chownSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { createDatabase, postgresFiles, postgresOwner, untilReady } from "../postgres.ts";
import { until } from "../support.ts";
import { Child } from "../system/child.ts";

/** Two of the smallest log segments fill most of it: a full disk is soon noticed. */
const SETTINGS = ["listen_addresses=", "max_connections=200", "fsync=off", "min_wal_size=32MB", "max_wal_size=64MB"];

class PostgresServer {
  readonly disk: string;
  readonly #data: string;
  #process: Child | undefined;

  constructor(disk: string) {
    this.disk = disk;
    this.#data = join(disk, "data");
    const as = postgresOwner();
    if (as) chownSync(disk, as.uid, as.gid);
  }

  get socket(): string {
    return join(this.disk, ".s.PGSQL.5432");
  }

  get url(): string {
    return `postgres://hangar@/postgres?host=${encodeURIComponent(this.disk)}`;
  }

  init(): void {
    this.#run("initdb", "-D", this.#data, "-U", "hangar", "-A", "trust", "--no-sync", "-E", "UTF8");
  }

  /** Begins anew as a standby of `primary`. */
  copy(primary: PostgresServer): void {
    rmSync(this.#data, { recursive: true, force: true });
    this.#run(
      "pg_basebackup",
      "-h",
      primary.disk,
      "-U",
      "hangar",
      "-D",
      this.#data,
      "-R",
      "-X",
      "stream",
      "--no-sync",
      "-c",
      "fast",
    );
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  async start(): Promise<void> {
    const flags = ["-D", this.#data, "-k", this.disk, ...SETTINGS.flatMap((setting) => ["-c", setting])];
    const child = new Child(join(postgresFiles(), "postgres"), flags, { ...postgresOwner(), cwd: this.disk });
    this.#process = child;
    const gone = (): void => {
      if (this.#process === child) this.#process = undefined;
    };
    void child.ended.then(gone, gone);
    await untilReady(this.url);
  }

  /** It ends at once, mid-sentence. */
  async crash(): Promise<void> {
    const child = this.#process;
    child?.signal("SIGQUIT");
    await child?.ended;
  }

  /** Whether commits wait for a standby. */
  waitForStandby(waits: boolean): void {
    appendFileSync(join(this.#data, "postgresql.auto.conf"), `synchronous_standby_names = '${waits ? "*" : ""}'\n`);
    this.#process?.signal("SIGHUP");
  }

  promote(): void {
    this.#run("pg_ctl", "promote", "-D", this.#data);
  }

  async query(sql: string): Promise<Record<string, unknown> | undefined> {
    const client = new pg.Client(this.url);
    try {
      await client.connect();
      return (await client.query<Record<string, unknown>>(sql)).rows[0];
    } finally {
      await client.end().catch(() => {});
    }
  }

  #run(program: string, ...args: readonly string[]): void {
    execFileSync(join(postgresFiles(), program), args, { ...postgresOwner(), cwd: this.disk, stdio: "pipe" });
  }
}

export class PostgresPair {
  readonly #servers: readonly [PostgresServer, PostgresServer];
  #primary = 0;
  #synchronous = true;
  /** The path of the database in a URL. */
  path = "";

  constructor(disks: readonly [string, string]) {
    for (const disk of disks) mkdirSync(disk, { recursive: true });
    this.#servers = [new PostgresServer(disks[0]), new PostgresServer(disks[1])];
  }

  get primary(): PostgresServer {
    return this.#servers[this.#primary === 0 ? 0 : 1];
  }

  get standby(): PostgresServer {
    return this.#servers[this.#primary === 0 ? 1 : 0];
  }

  get sockets(): readonly string[] {
    return this.#servers.map(({ socket }) => socket);
  }

  async start(): Promise<void> {
    this.primary.init();
    await this.primary.start();
    this.path = new URL((await createDatabase(this.primary.url)).replace("@/", "@localhost/")).pathname;
    await this.#attach();
  }

  async crash(): Promise<void> {
    await this.primary.crash();
  }

  /** Starts whichever is not there; the one that was primary last still is. */
  async again(): Promise<void> {
    for (const server of [this.primary, this.standby]) if (!server.isRunning) await server.start();
    if (this.#synchronous) await this.#caughtUp();
  }

  /** The primary dies and the standby takes its place. Nothing that was acknowledged is lost by it. */
  async failover(): Promise<void> {
    if (this.#synchronous) await this.#caughtUp();
    await this.primary.crash();
    if (!this.standby.isRunning) await this.standby.start();
    this.standby.waitForStandby(false);
    this.standby.promote();
    this.#primary = 1 - this.#primary;
  }

  /** The one that died becomes the standby of the other. */
  async restoreStandby(): Promise<void> {
    await until("it was promoted", async () => {
      const row = await this.primary.query("SELECT pg_is_in_recovery() AS standby").catch(() => undefined);
      return row?.["standby"] === false;
    });
    await this.#attach();
  }

  /** From now on commits wait for nobody, and the standby gets nothing any more: a failover loses what is written. */
  async loseWrites(): Promise<void> {
    this.#synchronous = false;
    this.primary.waitForStandby(false);
    await this.standby.crash();
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) await server.crash();
  }

  async #attach(): Promise<void> {
    this.standby.copy(this.primary);
    await this.standby.start();
    await this.#caughtUp("async");
    this.primary.waitForStandby(true);
    await this.#caughtUp();
  }

  /** Streaming has begun; a standby that only begins to has not all of it yet. */
  async #caughtUp(state = "sync"): Promise<void> {
    await until(
      "the standby follows",
      async () => {
        const sql = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1".replace(
          "$1",
          `'${state}'`,
        );
        return (await this.primary.query(sql).catch(() => undefined)) !== undefined;
      },
      { every_ms: 50 },
    );
  }
}
