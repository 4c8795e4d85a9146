/** Backups are crash-consistent snapshots of the volume, from which PostgreSQL recovers when it starts. */
import type { MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { destroy } from "../deploy/machines.ts";
import type { Running } from "../deploy/plan.ts";
import { untilHealthy } from "../deploy/wait.ts";
import { type Context, firstArgument, type Input, type Verb } from "../verb.ts";
import { untilMade } from "../volumes/find.ts";
import { snapshotsCreate, snapshotsList } from "../volumes/snapshots.ts";
import { findPostgres, POSTGRES, placeOf, sql } from "./find.ts";

/** The input of a volume command for the volume of the database. */
function aboutVolume(input: Input, app_name: string, { config }: Running): Input {
  const { app_from: _, ...rest } = input;
  return { ...rest, args: [volumeOf(app_name, config)], options: { ...input.options, app: app_name } };
}

function volumeOf(app_name: string, { mounts = [] }: MachineConfig): string {
  const volume = mounts[0]?.volume;
  if (volume !== undefined) return volume;
  throw new ClientError(409, {
    error: `the database of ${app_name} has no volume, so there are no backups`,
    status: "conflict",
    hint: "pg_dump through `hangar postgres connect --url-only`",
  });
}

export const postgresBackup: Verb = {
  words: "postgres backup",
  summary: "Back up a database now: a snapshot of its volume; daily backups are automatic",
  arguments: [POSTGRES],
  examples: ["hangar postgres backup ledger"],
  async run(context, input) {
    const app_name = firstArgument(input);
    const about = aboutVolume(input, app_name, await findPostgres(context, app_name));
    // Shortens recovery after a restore; the snapshot is consistent without it.
    await sql(context, app_name, "CHECKPOINT;");
    return await snapshotsCreate.run(context, about);
  },
};

export const postgresBackups: Verb = {
  words: "postgres backups",
  summary: "List the backups of a database",
  arguments: [POSTGRES],
  lists: true,
  examples: ["hangar postgres backups ledger"],
  async run(context, input) {
    const app_name = firstArgument(input);
    return await snapshotsList.run(context, aboutVolume(input, app_name, await findPostgres(context, app_name)));
  },
};

export const postgresRestore: Verb = {
  words: "postgres restore",
  summary: "Restore a database from a backup; the previous volume is kept",
  arguments: [POSTGRES, ["<backup>", "an id of `hangar postgres backups`"]],
  examples: ["hangar postgres restore ledger $BACKUP"],
  async run(context, input) {
    const app_name = firstArgument(input);
    const old = await findPostgres(context, app_name);
    const before = volumeOf(app_name, old.config);
    const { client, say } = context;
    const params = { app_name };
    const { region, size_gb, name, snapshot_retention } = await client.call(
      "GET /v1/apps/:app_name/volumes/:volume_id",
      {
        params: { app_name, volume_id: before },
      },
    );
    const body = {
      name,
      region,
      size_gb,
      snapshot_retention,
      snapshot_id: input.args[1] ?? "",
      require_unique_zone: false,
    };
    const made = await client.call("POST /v1/apps/:app_name/volumes", { params, body });
    const volume = (await untilMade(context, { app_name, volume_id: made.id }, "restoring")).id;
    const machine = await swapped(context, app_name, old, volume).catch(async (thrown: unknown) => {
      const unused = { app_name, volume_id: volume };
      await client.call("DELETE /v1/apps/:app_name/volumes/:volume_id", { params: unused }).catch(() => {});
      throw thrown;
    });
    say(
      `the data until now is in ${before}: \`hangar volumes delete ${before} --app ${app_name}\` when it is not needed`,
    );
    const data = { app_name, machine_id: machine, volume, previous_volume: before };
    return { data, text: `${app_name} runs from ${body.snapshot_id} on ${volume}; passwords are as they were then` };
  },
};

/** Stops the machine, so that nothing is written, then starts one on the volume; restarts the old one on failure. */
async function swapped(context: Context, app_name: string, old: Running, volume: string): Promise<string> {
  const { client } = context;
  const place = placeOf(context, app_name, old.region);
  const machine = { app_name, machine_id: old.id };
  const mounts = (old.config.mounts ?? []).map(({ path }) => ({ volume, path }));
  try {
    await client.call("POST /v1/apps/:app_name/machines/:machine_id/stop", { params: machine, body: {} });
    await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", {
      params: machine,
      query: { state: ["stopped"], instance_id: old.instance_id, timeout: "60" },
    });
    place.undo.add(`stopping ${old.id}`, () =>
      client.call("POST /v1/apps/:app_name/machines/:machine_id/start", { params: machine }),
    );
    const made = await client.call("POST /v1/apps/:app_name/machines", {
      params: { app_name },
      body: { region: old.region, config: { ...old.config, mounts } },
    });
    place.undo.add(`machine ${made.id}`, () => destroy(place, made.id));
    await untilHealthy(place, made);
    place.undo.clear();
    await destroy(place, old.id);
    return made.id;
  } catch (thrown) {
    await place.undo.run(({ what, error }) =>
      place.status.say(error === undefined ? `undone: ${what}` : `could not undo ${what}: ${error}`),
    );
    throw thrown;
  }
}
