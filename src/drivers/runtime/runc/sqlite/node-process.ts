/**
 * The SQLite node of a machine, as a process of its init. The platform's own Node.js runs it, through its own loader and
 * with its own libraries, so neither the image's libc nor its environment matters.
 */
import { NODE_PROGRAM, SQLITE_PORT, SQLITE_SECRETS } from "#core/sqlite-node.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { GuestProcess } from "../boot-file.ts";

/** The descriptor at which process 1 waits for a sidecar; native/init.c has the same. */
const READY_FD = 3;

/** Root may read and write databases of every user of the machine. */
const ROOT = { uid: 0, gid: 0, groups: [], home: "/" };

type Sqlite = NonNullable<Launch["config"]["sqlite"]>;

export function sqliteNode(sqlite: Sqlite, { secrets }: Pick<Launch, "secrets">): GuestProcess {
  const { dir, backup, ack, cluster_size } = sqlite;
  const options: Record<string, string | undefined> = {
    dir,
    listen: `[::]:${SQLITE_PORT}`,
    "ready-fd": String(READY_FD),
    backup,
    ack,
    "cluster-size": cluster_size === undefined ? undefined : String(cluster_size),
  };
  const credentials = SQLITE_SECRETS.flatMap((name) =>
    secrets[name] === undefined ? [] : [`${name}=${secrets[name]}`],
  );
  return {
    argv: [
      ...NODE_PROGRAM,
      "--machine",
      ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
    ],
    variables: ["HOME=/", ...(backup === undefined ? [] : credentials)],
    folder: "/",
    user: ROOT,
    sidecar: true,
  };
}
