/**
 * Machines that a killed deploy has left behind: new ones of a release that failed, and old ones that it had taken out of
 * traffic. Both carry the number of that release in their metadata, so the next deploy can tell them from the app's own.
 */
import { collect } from "../lists.ts";
import type { Context } from "../verb.ts";
import { destroy } from "./machines.ts";
import type { Place } from "./place.ts";
import type { Leftovers, Running } from "./plan.ts";

/** The release that made the machine. */
export const CREATED_KEY = "hangar_created_by_release";
/** The release that no longer needs it. */
export const RETIRED_KEY = "hangar_retired_by_release";

export async function leftoversOf(
  { client }: Context,
  app_name: string,
  machines: readonly Running[],
): Promise<Leftovers> {
  const marked = machines.filter(({ config }) => config.metadata?.[CREATED_KEY] ?? config.metadata?.[RETIRED_KEY]);
  if (marked.length === 0) return { remove: [], restore: [] };
  const releases = await collect(client.pages("GET /v1/apps/:app_name/releases", { params: { app_name } }));
  const status = new Map(releases.map((release) => [String(release.version), release.status]));
  const remove: Running[] = [];
  const restore: Running[] = [];
  for (const machine of marked) {
    const { [CREATED_KEY]: created = "", [RETIRED_KEY]: retired = "" } = machine.config.metadata ?? {};
    // Releases that are no longer listed are old, and were complete when the next one began.
    const replaced = retired !== "" && (status.get(retired) ?? "complete") === "complete";
    if (replaced || status.get(created) === "failed") remove.push(machine);
    else if (retired !== "" && status.get(retired) === "failed") restore.push(machine);
  }
  return { remove, restore };
}

/** Old machines serve again before the new ones go. */
export async function clearLeftovers(place: Place, { remove, restore }: Leftovers): Promise<void> {
  for (const { id, name } of restore) {
    await unretire(place, id);
    place.status.log(`uncordoned ${name}: a deploy that was interrupted had taken it out of traffic`);
  }
  for (const { id, name } of remove) {
    await destroy(place, id);
    place.status.log(`destroyed ${name}: left by a deploy that was interrupted`);
  }
}

/** Removes the machine from traffic, to be destroyed when the release is complete. */
export async function retire(place: Place, machine_id: string, version: number): Promise<void> {
  await mark(place, machine_id, version);
  const { context, app_name } = place;
  await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/cordon", {
    params: { app_name, machine_id },
  });
}

/** Whatever becomes of this process, the machine is destroyed once the release is complete. */
export async function mark({ context, app_name }: Place, machine_id: string, version: number): Promise<void> {
  await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/metadata/:key", {
    params: { app_name, machine_id, key: RETIRED_KEY },
    body: { value: String(version) },
  });
}

export async function unmark({ context, app_name }: Place, machine_id: string): Promise<void> {
  await context.client.call("DELETE /v1/apps/:app_name/machines/:machine_id/metadata/:key", {
    params: { app_name, machine_id, key: RETIRED_KEY },
  });
}

export async function unretire(place: Place, machine_id: string): Promise<void> {
  const { context, app_name } = place;
  await context.client.call("POST /v1/apps/:app_name/machines/:machine_id/uncordon", {
    params: { app_name, machine_id },
  });
  await unmark(place, machine_id);
}
