/** A real PostgreSQL for tests: started on first use, on a unix socket in a temp folder, gone at the end. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { PATIENCE_MS } from "./support.ts";

const NOT_OURS = { restart: async () => {}, crash: async () => {}, start: async () => {}, stop: async () => {} };

interface Server {
  /** Address of a new, empty database. */
  database(): Promise<string>;
  /** As after a crash: it ends at once, mid-sentence, and comes back from its log. Not of a server that was given. */
  restart(): Promise<void>;
  /** The first half of it, and the second: what is between is an outage. */
  crash(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Why there is none on this box, or undefined. */
export function postgresMissing(): string | undefined {
  if (process.env["HANGAR_TEST_POSTGRES_URL"]) return undefined;
  return binaries()
    ? undefined
    : "no PostgreSQL server here (apt-get install postgresql, or set HANGAR_TEST_POSTGRES_URL)";
}

function binaries(): string | undefined {
  const base = "/usr/lib/postgresql";
  if (!existsSync(base)) return undefined;
  const newest = readdirSync(base).sort((a, b) => Number(b) - Number(a));
  return newest.map((version) => join(base, version, "bin")).find((dir) => existsSync(join(dir, "initdb")));
}

/** The server refuses to run as root; Debian's package brings a user for it. */
function owner(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/**
 * Without `fsync` it promises nothing about a power cut, which no test of ours makes of it, and is several times as
 * fast; what it has written survives its own end all the same. Figures are taken with it. `listen` is an address of this
 * box beside the socket, whose neighbours are let in.
 */
export async function startPostgres({ fsync = false, listen = "" } = {}): Promise<Server> {
  const given = process.env["HANGAR_TEST_POSTGRES_URL"];
  if (given) return { database: () => createDatabase(given), ...NOT_OURS };
  const bin = binaries();
  if (!bin) throw new Error(postgresMissing());
  const dir = mkdtempSync(join(tmpdir(), "hangar-pg-"));
  const as = owner();
  if (as) chownSync(dir, as.uid, as.gid);
  const data = join(dir, "data");
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "hangar", "-A", "trust", "--no-sync", "-E", "UTF8"], {
    ...as,
    cwd: dir,
    stdio: "pipe",
  });
  if (listen) appendFileSync(join(data, "pg_hba.conf"), `host all all ${listen}/24 trust\n`);
  const settings = [`listen_addresses=${listen}`, "max_connections=200", `fsync=${fsync}`];
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
    stop,
  };
}

async function untilReady(url: string): Promise<void> {
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

async function createDatabase(server: string): Promise<string> {
  const name = `test_${process.pid}_${++databases}`;
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server.replace("@/", "@localhost/"));
  url.pathname = `/${name}`;
  return url.toString().replace("@localhost/", "@/");
}
