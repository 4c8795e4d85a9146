/** Rules of `config.sqlite` that involve more than one field. */
import type { Problem } from "#core/errors.ts";
import { directoryProblem, isAtOrBelow, SQLITE_PORT } from "#core/sqlite-node.ts";

type Loose = Record<string, unknown>;
const isObject = (value: unknown): value is Loose =>
  value !== null && typeof value === "object" && !Array.isArray(value);
const objects = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isObject) : []);

export function sqliteProblems({ sqlite, mounts, services }: Loose, path: string): Problem[] {
  if (!isObject(sqlite)) return [];
  return [
    ...directoryProblems(sqlite["dir"], mounts, `${path}.sqlite.dir`),
    ...quorumProblems(sqlite, `${path}.sqlite.cluster_size`),
    ...portProblems(services, path),
  ];
}

/** Only a volume keeps databases when the machine's root disk is made anew. */
function directoryProblems(dir: unknown, mounts: unknown, path: string): Problem[] {
  if (typeof dir !== "string" || !dir.startsWith("/")) return [];
  const problem = directoryProblem(dir);
  if (problem !== undefined) return [{ path, problem }];
  const paths = objects(mounts).flatMap((mount) => (typeof mount["path"] === "string" ? [mount["path"]] : []));
  if (paths.some((mount) => isAtOrBelow(dir, mount))) return [];
  const there = paths.length > 0 ? `the volume is at ${paths.join(", ")}` : "config.mounts has none";
  return [{ path, problem: `must be on a volume; ${there}`, allowed: "the path of a mount, or one below" }];
}

function quorumProblems({ ack, cluster_size }: Loose, path: string): Problem[] {
  if ((ack === "quorum") === (cluster_size !== undefined)) return [];
  return [{ path, problem: ack === "quorum" ? 'is required with ack "quorum"' : 'is only for ack "quorum"' }];
}

function portProblems(services: unknown, path: string): Problem[] {
  return objects(services).flatMap(({ internal_port }, index) => {
    if (internal_port !== SQLITE_PORT) return [];
    const at = `${path}.services.${index}.internal_port`;
    return [{ path: at, problem: "is the port of the SQLite node (config.sqlite)", allowed: "another port" }];
  });
}
