/** PgBouncer of Debian in transaction mode, in front of a PostgreSQL of a test. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./support.ts";

const PROGRAM = "/usr/sbin/pgbouncer";
const PORT = 6432;

export function pgbouncerMissing(): string | undefined {
  return existsSync(PROGRAM) ? undefined : "no PgBouncer here (apt-get install pgbouncer)";
}

export interface PgBouncer {
  /** The address of the same database, through the pooler. */
  url(direct: string): string;
  stop(): Promise<void>;
}

/** `folder` holds the server's socket; `pool_size` is how many sessions of the server all clients of a database share. */
export async function startPgBouncer(folder: string, { pool_size = 3 } = {}): Promise<PgBouncer> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-pgbouncer-"));
  const file = join(dir, "pgbouncer.ini");
  const lines = [
    "[databases]",
    `* = host=${folder} port=5432 user=hangar`,
    "[pgbouncer]",
    "listen_addr =",
    `listen_port = ${PORT}`,
    `unix_socket_dir = ${dir}`,
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${pool_size}`,
    "max_client_conn = 500",
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  // It refuses to run as root.
  const root = process.getuid?.() === 0;
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const as = root ? { uid: id("-u"), gid: id("-g") } : {};
  if (root) for (const path of [dir, file]) chownSync(path, id("-u"), id("-g"));
  const child = spawn(PROGRAM, ["-q", file], { ...as, cwd: dir, stdio: "ignore" });
  await until("PgBouncer listens", () => existsSync(join(dir, `.s.PGSQL.${PORT}`)));
  return {
    url(direct) {
      const { pathname } = new URL(direct.replace("@/", "@localhost/"));
      return `postgres://hangar@${pathname}?host=${encodeURIComponent(dir)}&port=${PORT}`;
    },
    async stop() {
      const exited = once(child, "exit");
      if (child.exitCode === null && child.kill("SIGKILL")) await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
