/** What is fixed about the SQLite node of a machine (`config.sqlite`): the platform, its driver and the command agree on it. */
import { normalize } from "node:path/posix";

/** The node's port in its machine: for other nodes, `/info`, `/events` and `/metrics`. */
export const SQLITE_PORT = 20_202;

/** In the machine: where the node's files are mounted. */
export const NODE_FOLDER = "/.svc/db";

const inFolder = (name: string): string => `${NODE_FOLDER}/${name}`;

/** The node's program: through its own loader and with its own libraries, so it runs in machines of every image. */
export const NODE_PROGRAM: readonly string[] = [
  inFolder("ld.so"),
  "--library-path",
  inFolder("lib"),
  inFolder("node"),
  "--v8-pool-size=1",
  inFolder("main.cjs"),
];

/** Secrets of the app with the credentials of a backup: for the node alone. */
export const SQLITE_SECRETS: readonly string[] = [
  "HANGAR_OBJECTS_ACCESS_KEY",
  "HANGAR_OBJECTS_SECRET_KEY",
  "HANGAR_OBJECTS_REGION",
];

/** Why a path cannot be the directory of the databases, or undefined. */
export function directoryProblem(dir: string): string | undefined {
  if (!dir.startsWith("/") || dir === "/") return "is no absolute path below /";
  return normalize(dir) === dir && !dir.endsWith("/")
    ? undefined
    : `is no plain path: write ${normalize(dir).replace(/\/+$/, "")}`;
}

/** Whether a volume that is mounted at `mount` has the directory. */
export function isAtOrBelow(dir: string, mount: string): boolean {
  const at = normalize(mount).replace(/\/+$/, "");
  return at !== "" && (dir === at || dir.startsWith(`${at}/`));
}
