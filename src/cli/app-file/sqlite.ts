/** `[sqlite]`: a node of replicated SQLite in the machines of the groups that have its directory on a volume. */
import type { MachineConfig } from "#client/api.ts";
import { directoryProblem, isAtOrBelow } from "#core/sqlite-node.ts";
import { UsageError } from "../verb.ts";
import type { AppFile } from "./read.ts";

export type Sqlite = NonNullable<MachineConfig["sqlite"]>;

export const ACK_MODES = ["none", "one", "quorum"] as const;

/** A process group. */
interface Mounting {
  once?: boolean;
  config: MachineConfig;
  mount?: { rest: { path: string } };
}

/** Machines that run to an end, or on a schedule, have no node. */
export const isOnVolume = ({ mount, once, config }: Mounting, dir: string): boolean =>
  mount !== undefined && !once && config.schedule === undefined && isAtOrBelow(dir, mount.rest.path);

/** The groups with the section's node; unchanged when the file has none. */
export function withSqliteSection<Group extends Mounting>(
  groups: Group[],
  { values, path }: Pick<AppFile, "values" | "path">,
): Group[] {
  const section = values["sqlite"] as Partial<Sqlite> | undefined;
  if (!section) return groups;
  const sqlite = checkedSqlite(section, `${path}: [sqlite]`);
  if (!groups.some((group) => isOnVolume(group, sqlite.dir)))
    throw new UsageError(
      `${path}: [sqlite] dir = "${sqlite.dir}" is on no volume: write [[mounts]] with destination = "${sqlite.dir}"`,
    );
  return groups.map((group) =>
    isOnVolume(group, sqlite.dir) ? { ...group, config: { ...group.config, sqlite } } : group,
  );
}

/** `where` names the section or the command in the errors. */
export function checkedSqlite({ dir, backup, ack, cluster_size }: Partial<Sqlite>, where: string): Sqlite {
  const problem = dir === undefined ? "is missing" : directoryProblem(dir);
  if (dir === undefined || problem !== undefined)
    throw new UsageError(`${where}: dir ${problem}; it is the directory of the databases, such as /data`);
  if (backup !== undefined && !/^https?:\/\/[^/\s]+\/\S+$/.test(backup))
    throw new UsageError(`${where}: backup is https://host/bucket[/path], not ${backup}`);
  if (ack !== undefined && !ACK_MODES.includes(ack))
    throw new UsageError(`${where}: ack is one of ${ACK_MODES.join(", ")}, not ${String(ack)}`);
  if ((ack === "quorum") !== (cluster_size !== undefined))
    throw new UsageError(`${where}: ack quorum needs the number of machines (cluster_size), and only that does`);
  return {
    dir,
    ...(backup === undefined ? {} : { backup }),
    ...(ack === undefined ? {} : { ack }),
    ...(cluster_size === undefined ? {} : { cluster_size }),
  };
}
