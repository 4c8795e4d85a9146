/** A root file system with this box's PostgreSQL of Debian's packages, and the program with which Hangar's own base image starts it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { START_POSTGRES } from "../../src/cli/images/start-scripts.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";

const DEBIAN = "/usr/lib/postgresql";
const version = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort().at(-1) : undefined;

export const PSQL = `${DEBIAN}/${version}/bin/psql`;
export const START = "/usr/local/bin/start-postgres";
const CLIENT = [`postgresql-client-${version}`, "coreutils", "dash", "util-linux", "sed"];
export const SERVER = [`postgresql-${version}`, "openssl"];

/** Why no such root can be made here, or undefined. */
export const postgresRootMissing = (more: readonly string[] = []): string | undefined =>
  version ? packagesMissing([...CLIENT, ...SERVER, ...more]) : "there is no PostgreSQL (apt-get install postgresql)";

/** psql, with the files of these packages; `start-postgres` is there in any case. */
export function postgresRoot(dir: string, packages: readonly string[]): string {
  const root = packageRoot(dir, [...CLIENT, ...packages]);
  // Debian's is a script that looks for a cluster of this box.
  rmSync(join(root, "usr/bin/psql"));
  symlinkSync(PSQL, join(root, "usr/bin/psql"));
  const start = join(root, START);
  mkdirSync(dirname(start), { recursive: true });
  writeFileSync(start, START_POSTGRES);
  chmodSync(start, 0o755);
  return root;
}
