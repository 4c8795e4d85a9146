import type { Volume } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { watch } from "../progress.ts";
import { type Context, filterApp, firstArgument, type Input, textOption, UsageError } from "../verb.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "the app it is looked for in"];
export const VOLUME: readonly [string, string] = ["<volume>", "id, or a name that only one volume of the app has"];

export interface Found {
  app_name: string;
  volume_id: string;
}

interface ListedVolume extends Volume {
  app_name: string;
}

/** The volumes of an app, or of every app of the organization. */
export async function listVolumes({ client }: Context, input: Input, deleted: boolean): Promise<ListedVolume[]> {
  const app = filterApp(input);
  const org_slug = textOption(input, "org");
  const names = app ? [app] : (await client.call("GET /v1/apps", { query: { org_slug } })).apps.map(({ name }) => name);
  const lists = names.map(async (app_name) => {
    const query = { include_deleted: deleted };
    const volumes = await client.call("GET /v1/apps/:app_name/volumes", { params: { app_name }, query });
    return volumes.map((volume) => ({ ...volume, app_name }));
  });
  return (await Promise.all(lists)).flat();
}

/** The volume a command is about; `deleted`: one that is to be taken back, or whose snapshots are. */
export async function findVolume(context: Context, input: Input, deleted = false): Promise<Found> {
  const wanted = firstArgument(input);
  const is_default = input.app_from !== undefined;
  const app_name = is_default ? undefined : textOption(input, "app");
  if (app_name && /^vol_\w+$/.test(wanted)) return { app_name, volume_id: wanted };
  const matching = async (asked: Input): Promise<ListedVolume[]> =>
    (await listVolumes(context, asked, deleted)).filter(({ id, name }) => id === wanted || name === wanted);
  // The default goes before the others; it may not be deployed yet, and then has none.
  const own = is_default ? await matching(input).catch(noneWithoutApp) : [];
  const { app: _, ...anywhere } = input.options;
  const found = own.length > 0 ? own : await matching(is_default ? { ...input, options: anywhere } : input);
  const [first, second] = found;
  if (!first) {
    const error = `there is no volume ${wanted} in ${app_name ?? "this organization"}`;
    throw new ClientError(404, { error, status: "not_found", hint: "hangar volumes list" });
  }
  if (second) throw new UsageError(`several volumes are named ${wanted}: ${found.map(({ id }) => id).join(", ")}`);
  return { app_name: first.app_name, volume_id: first.id };
}

function noneWithoutApp(thrown: unknown): ListedVolume[] {
  if (thrown instanceof ClientError && thrown.http === 404) return [];
  throw thrown;
}

/** The volume when it is made, with a bar meanwhile. */
export async function untilMade({ client }: Context, params: Found, label: string): Promise<Volume> {
  const volume = await watch(label, async () => {
    const value = await client.call("GET /v1/apps/:app_name/volumes/:volume_id", { params });
    const done = !["creating", "restoring", "hydrating", "moving"].includes(value.state);
    return { value, done, progress: value.progress };
  });
  if (volume.state === "created") return volume;
  const error = `volume ${volume.id} is ${volume.state}${volume.error ? `: ${volume.error}` : ""}`;
  throw new ClientError(500, { error, status: "storage_failed" });
}
