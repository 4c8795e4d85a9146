/**
 * The SQLite node of a machine, as a process of its init. The platform's own Node.js runs it, through its own loader and
 * with its own libraries, so neither the image's libc nor its environment matters.
 */
import { SQLITE_PORT, SQLITE_SECRETS } from "#core/sqlite-node.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { GuestProcess } from "../boot-file.ts";

/** In the machine: where the node's files are mounted. */
export const NODE_FOLDER = "/.svc/db";
/** The descriptor at which process 1 waits for a sidecar; native/init.c has the same. */
const READY_FD = 3;

/** Root may read and write databases of every user of the machine. */
const ROOT = { uid: 0, gid: 0, groups: [], home: "/" };

type Sqlite = NonNullable<Launch["config"]["sqlite"]>;

export function sqliteNode(sqlite: Sqlite, { secrets }: Pick<Launch, "secrets">): GuestProcess {
  const { dir, backup, ack, cluster_size } = sqlite;
  const in_folder = (name: string): string => `${NODE_FOLDER}/${name}`;
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
  const loader = [in_folder("ld.so"), "--library-path", in_folder("lib")];
  const program = [in_folder("node"), "--v8-pool-size=1", in_folder("main.cjs")];
  return {
    argv: [
      ...loader,
      ...program,
      "--machine",
      ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
    ],
    variables: ["HOME=/", ...(backup === undefined ? [] : credentials)],
    folder: "/",
    user: ROOT,
    sidecar: true,
  };
}
