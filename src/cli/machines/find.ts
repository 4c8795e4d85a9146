import type { Machine } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { type Context, type Input, textOption } from "../verb.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "the app it is looked for in"];

export const MACHINE: readonly [string, string] = ["<machine>", "id or name"];
export const NONCE: readonly [string, string] = ["--nonce <nonce>", "the nonce of the machine's lease"];

export interface Found {
  params: { app_name: string; machine_id: string };
  /** The lease's nonce, when the command was given one. */
  headers: Record<string, string>;
}

/** The machine a command is about: an id or a name, looked for in the app, or in the whole organization. */
export async function findMachine(context: Context, input: Input, place = 0): Promise<Found> {
  const wanted = input.args[place] ?? "";
  const app_name = await homeOf(context, input, wanted);
  const nonce = textOption(input, "nonce");
  const headers: Record<string, string> = nonce === undefined ? {} : { "svc-machine-lease-nonce": nonce };
  if (/^[0-9a-f]{14}$/.test(wanted)) return { params: { app_name, machine_id: wanted }, headers };
  const machines = await context.client.call("GET /v1/apps/:app_name/machines", {
    params: { app_name },
    query: { summary: true },
  });
  const found = machines.find(({ name }) => name === wanted) ?? missing(wanted, app_name);
  return { params: { app_name, machine_id: found.id }, headers };
}

/** An app that the command line names is the only one; the default goes before the others. */
async function homeOf(context: Context, input: Input, wanted: string): Promise<string> {
  const app_name = textOption(input, "app");
  if (app_name === undefined) return await appOf(context, input, wanted);
  if (input.app_from === undefined) return app_name;
  const own = await context.client
    .call("GET /v1/apps/:app_name/machines", { params: { app_name }, query: { summary: true } })
    .catch((thrown: unknown) => {
      // An app that was not deployed yet has no machines.
      if (thrown instanceof ClientError && thrown.http === 404) return [];
      throw thrown;
    });
  return own.some(({ id, name }) => id === wanted || name === wanted) ? app_name : await appOf(context, input, wanted);
}

async function appOf({ client }: Context, input: Input, wanted: string): Promise<string> {
  const params = { org_slug: textOption(input, "org") ?? "personal" };
  let cursor: string | undefined;
  do {
    const page = await client.call("GET /v1/orgs/:org_slug/machines", { params, query: { cursor, limit: 1000 } });
    const found = page.machines.find(({ id, name }) => id === wanted || name === wanted);
    if (found) return found.app_name;
    cursor = page.next_cursor;
  } while (cursor);
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
