/** `config.sqlite` of an app's groups: a node of replicated SQLite in each of their machines. */
import { ClientError } from "#client/client.ts";
import type { Group } from "../app-file/groups.ts";
import { isOnVolume, type Sqlite } from "../app-file/sqlite.ts";
import type { Context } from "../verb.ts";
import { type Definition, newestDefinition } from "./definition.ts";

export const sqliteOf = ({ groups }: Definition): Sqlite | undefined =>
  groups.map(({ config }) => config.sqlite).find((sqlite) => sqlite !== undefined);

/** The groups whose machines get a node: those with a volume that has the directory. */
export const groupsWith = ({ groups }: Definition, { dir }: Sqlite): Group[] =>
  groups.filter((group) => isOnVolume(group, dir));

export function withSqlite(definition: Definition, sqlite: Sqlite | undefined): Definition {
  const groups = definition.groups.map((group): Group => {
    const { sqlite: _, ...config } = group.config;
    return { ...group, config: sqlite && isOnVolume(group, sqlite.dir) ? { ...config, sqlite } : config };
  });
  return { ...definition, groups };
}

/** A deploy of a file without `[sqlite]` keeps what `hangar sqlite attach` added, as it keeps the egress policy. */
export async function keepSqlite(context: Context, app_name: string, definition: Definition): Promise<Definition> {
  if (sqliteOf(definition)) return definition;
  const newest = await newestDefinition(context, app_name).catch((thrown: unknown) => {
    // A new app.
    if (thrown instanceof ClientError && thrown.http === 404) return undefined;
    throw thrown;
  });
  const sqlite = newest && sqliteOf(newest);
  if (!sqlite) return definition;
  if (groupsWith(definition, sqlite).length === 0)
    context.say(
      `warning: no volume of this file has ${sqlite.dir}, so the databases there are not replicated any more`,
    );
  return withSqlite(definition, sqlite);
}
