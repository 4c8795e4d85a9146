/** A real PostgreSQL for tests: started on first use, on a unix socket in a temp folder, removed at the end. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { PATIENCE_MS } from "./support.ts";

interface Server {
  /** Address of a new, empty database. */
  database(): Promise<string>;
  /** As after a crash: it ends at once, mid-sentence, and comes back from its log. Not of a server that was given. */
  restart(): Promise<void>;
  /** The first half of it, and the second: what is between is an outage. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** A standby that has, at every moment, whatever this one acknowledged (synchronous streaming replication). */
  standby(): Promise<Standby>;
  stop(): Promise<void>;
}

interface Standby {
  /** The folder of its socket. */
  dir: string;
  promote(): void;
  stop(): Promise<void>;
}

/** Why there is none on this box, or undefined. */
export function postgresMissing(): string | undefined {
  if (process.env["HANGAR_TEST_POSTGRES_URL"]) return undefined;
  return binaries()
    ? undefined
    : "no PostgreSQL server here (apt-get install postgresql, or set HANGAR_TEST_POSTGRES_URL)";
}

/** The folder of the newest server's programs. */
export function postgresFiles(): string {
  return binaries() ?? "";
}

function binaries(): string | undefined {
  const base = "/usr/lib/postgresql";
  if (!existsSync(base)) return undefined;
  const newest = readdirSync(base).sort((a, b) => Number(b) - Number(a));
  return newest.map((version) => join(base, version, "bin")).find((dir) => existsSync(join(dir, "initdb")));
}

/** The server refuses to run as root; Debian's package brings a user for it. */
export function postgresOwner(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** Shared memory in files of its own: a server whose segments in /dev/shm were cleaned up by another program fails. */
const OWN_SEGMENTS = "dynamic_shared_memory_type=mmap";

/**
 * Without `fsync` it promises nothing about a power cut, which no test of ours makes of it, and is several times as
 * fast; what it has written survives its own end all the same. Figures are taken with it. `listen` is an address of this
 * box beside the socket, whose neighbours are let in.
 */
export async function startPostgres({ fsync = false, listen = "", max_connections = 200 } = {}): Promise<Server> {
  const given = process.env["HANGAR_TEST_POSTGRES_URL"];
  if (given) return givenServer(given);
  const bin = binaries();
  if (!bin) throw new Error(postgresMissing());
  const dir = mkdtempSync(join(tmpdir(), "hangar-pg-"));
  const as = postgresOwner();
  if (as) chownSync(dir, as.uid, as.gid);
  const data = join(dir, "data");
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "hangar", "-A", "trust", "--no-sync", "-E", "UTF8"], {
    ...as,
    cwd: dir,
    stdio: "pipe",
  });
  if (listen) appendFileSync(join(data, "pg_hba.conf"), `host all all ${listen}/24 trust\n`);
  const own = [`listen_addresses=${listen}`, `max_connections=${max_connections}`, `fsync=${fsync}`];
  const settings = [...own, OWN_SEGMENTS];
  const flags = ["-D", data, "-k", dir, ...settings.flatMap((setting) => ["-c", setting])];
  const start = () => spawn(join(bin, "postgres"), flags, { ...as, cwd: dir, stdio: "ignore" });
  let server = start();
  const end = async (how: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, "exit");
    server.kill(how);
    await exited;
  };
  const url = `postgres://hangar@/postgres?host=${encodeURIComponent(dir)}`;
  const stop = async (): Promise<void> => {
    await end("SIGINT");
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await untilReady(url);
  } catch (thrown) {
    await stop();
    throw thrown;
  }
  const crash = () => end("SIGQUIT");
  const again = async (): Promise<void> => {
    server = start();
    await untilReady(url);
  };
  return {
    database: () => createDatabase(url),
    restart: async () => {
      await crash();
      await again();
    },
    crash,
    start: again,
    standby: () => startStandby({ bin, url, dir, as }),
    stop,
  };
}

function givenServer(url: string): Server {
  const standby = () => Promise.reject(new Error("HANGAR_TEST_POSTGRES_URL names a server without a standby"));
  const nothing = async (): Promise<void> => {};
  return {
    database: () => createDatabase(url),
    restart: nothing,
    crash: nothing,
    start: nothing,
    standby,
    stop: nothing,
  };
}

interface Primary {
  bin: string;
  url: string;
  dir: string;
  as: { uid: number; gid: number } | undefined;
}

async function startStandby(primary: Primary): Promise<Standby> {
  const { bin, as } = primary;
  const dir = mkdtempSync(join(tmpdir(), "hangar-pg-"));
  if (as) chownSync(dir, as.uid, as.gid);
  const data = join(dir, "data");
  const copy = ["-h", primary.dir, "-U", "hangar", "-D", data, "-R", "-X", "stream", "--no-sync", "-c", "fast"];
  execFileSync(join(bin, "pg_basebackup"), copy, { ...as, cwd: dir, stdio: "pipe" });
  const settings = ["listen_addresses=", "fsync=false", "max_connections=200"].flatMap((one) => ["-c", one]);
  const server = spawn(join(bin, "postgres"), ["-D", data, "-k", dir, ...settings], {
    ...as,
    cwd: dir,
    stdio: "ignore",
  });
  await untilReady(`postgres://hangar@/postgres?host=${encodeURIComponent(dir)}`);
  const client = new pg.Client(primary.url);
  await client.connect();
  await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await client.query("SELECT pg_reload_conf()");
  await client.end();
  return {
    dir,
    // The new primary has no standby of its own to wait for.
    promote: () => {
      appendFileSync(join(data, "postgresql.auto.conf"), "synchronous_standby_names = ''\n");
      execFileSync(join(bin, "pg_ctl"), ["promote", "-D", data], { ...as, cwd: dir, stdio: "pipe" });
    },
    async stop() {
      const exited = once(server, "exit");
      if (server.exitCode === null && server.kill("SIGQUIT")) await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export async function untilReady(url: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const client = new pg.Client(url);
    try {
      await client.connect();
      return;
    } catch (thrown) {
      if (performance.now() > deadline) throw thrown;
      await delay(50);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

let databases = 0;

export async function createDatabase(server: string): Promise<string> {
  const name = `test_${process.pid}_${++databases}`;
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server.replace("@/", "@localhost/"));
  url.pathname = `/${name}`;
  return url.toString().replace("@localhost/", "@/");
}
