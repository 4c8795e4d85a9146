import type { Machine } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { type Context, type Input, textOption } from "../verb.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "search in this app"];

export const MACHINE: readonly [string, string] = ["<machine>", "id or name"];
export const NONCE: readonly [string, string] = ["--nonce <nonce>", "the nonce of the machine's lease"];

export interface Found {
  params: { app_name: string; machine_id: string };
  /** The lease's nonce, when the command was given one. */
  headers: Record<string, string>;
}

/** Finds the machine of a command by id or name, in the app or in the whole organization. */
export async function findMachine(context: Context, input: Input, place = 0): Promise<Found> {
  const wanted = input.args[place] ?? "";
  const app_name = await homeOf(context, input, wanted);
  const nonce = textOption(input, "nonce");
  const headers: Record<string, string> = nonce === undefined ? {} : { "svc-machine-lease-nonce": nonce };
  if (/^[0-9a-f]{14}$/.test(wanted)) return { params: { app_name, machine_id: wanted }, headers };
  const machine_id = (await idIn(context, app_name, wanted)) ?? missing(wanted, app_name);
  return { params: { app_name, machine_id }, headers };
}

/** Searches only an app named on the command line; the default app is searched before the others. */
async function homeOf(context: Context, input: Input, wanted: string): Promise<string> {
  const app_name = textOption(input, "app");
  if (app_name === undefined) return await appOf(context, input, wanted);
  if (input.app_from === undefined) return app_name;
  const own = await idIn(context, app_name, wanted).catch((thrown: unknown) => {
    // An app that was not deployed yet has no machines.
    if (thrown instanceof ClientError && thrown.http === 404) return undefined;
    throw thrown;
  });
  return own === undefined ? await appOf(context, input, wanted) : app_name;
}

/** The id of an app's machine of this id or name. */
async function idIn({ client }: Context, app_name: string, wanted: string): Promise<string | undefined> {
  const request = { params: { app_name }, query: { summary: true } };
  for await (const { id, name } of client.list("GET /v1/apps/:app_name/machines", request))
    if (id === wanted || name === wanted) return id;
  return undefined;
}

async function appOf({ client }: Context, input: Input, wanted: string): Promise<string> {
  const params = { org_slug: textOption(input, "org") ?? "personal" };
  const query = { search: wanted };
  for await (const { id, name, app_name } of client.list("GET /v1/orgs/:org_slug/machines", { params, query }))
    if (id === wanted || name === wanted) return app_name;
  return missing(wanted, params.org_slug);
}

function missing(wanted: string, where: string): never {
  throw new ClientError(404, {
    error: `there is no machine ${wanted} in ${where}`,
    status: "not_found",
    hint: "hangar machines list",
  });
}

export async function readMachine({ client }: Context, { params }: Found): Promise<Machine> {
  return await client.call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {} });
}
