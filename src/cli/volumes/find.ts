import type { Volume } from "#client/api.ts";
import { type Client, ClientError } from "#client/client.ts";
import { collect } from "../lists.ts";
import { watch } from "../progress.ts";
import { type Context, filterApp, firstArgument, type Input, textOption, UsageError } from "../verb.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "search in this app"];
export const VOLUME: readonly [string, string] = ["<volume>", "id, or a name that only one volume of the app has"];

export interface Found {
  app_name: string;
  volume_id: string;
}

interface ListedVolume extends Volume {
  app_name: string;
}

/** The volumes of an app, or of every app of the organization, in pages. */
export async function* volumePages(
  { client }: Context,
  input: Input,
  include_deleted: boolean,
): AsyncGenerator<ListedVolume[]> {
  const app = filterApp(input);
  const names = app ? [app] : appNames(client, textOption(input, "org"));
  for await (const app_name of names) {
    const request = { params: { app_name }, query: { include_deleted } };
    for await (const page of client.pages("GET /v1/apps/:app_name/volumes", request))
      if (page.length > 0) yield page.map((volume) => ({ ...volume, app_name }));
  }
}

async function* appNames(client: Client, org_slug: string | undefined): AsyncGenerator<string> {
  for await (const { name } of client.list("GET /v1/apps", { query: { org_slug } })) yield name;
}

/** Finds the volume of a command; `deleted`: including deleted ones, to restore them or their snapshots. */
export async function findVolume(context: Context, input: Input, deleted = false): Promise<Found> {
  const wanted = firstArgument(input);
  const is_default = input.app_from !== undefined;
  const app_name = is_default ? undefined : textOption(input, "app");
  if (app_name && /^vol_\w+$/.test(wanted)) return { app_name, volume_id: wanted };
  const matching = async (request: Input): Promise<ListedVolume[]> =>
    (await collect(volumePages(context, request, deleted))).filter(({ id, name }) => id === wanted || name === wanted);
  // The default app is searched first; it may not exist yet, and then has none.
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

/** Waits until the volume is created, with a progress bar. */
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
