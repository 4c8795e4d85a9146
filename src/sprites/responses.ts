import { isoTime } from "#core/clock.ts";
import { VERSION } from "#core/version.ts";
import type { MachineState } from "#machines/lifecycle/states.ts";
import type { Shown } from "./schema.ts";
import { type SpriteView, STATUSES, type Status, statusOf } from "./types.ts";
import { type UrlPlace, urlOf } from "./urls/names.ts";

export function shown(sprite: SpriteView, org: { slug: string }, place: UrlPlace): Shown {
  const { image, cpus, memory_mb, storage_gb, region, environment } = sprite.settings;
  return {
    id: sprite.id,
    name: sprite.name,
    organization: org.slug,
    status: statusOf(sprite.machine_state),
    labels: [...sprite.labels],
    url: urlOf(sprite, place),
    url_settings: {
      auth: sprite.url_auth,
      ...(sprite.private_access === null ? {} : { private_access: sprite.private_access }),
    },
    config: { cpus, ram_mb: memory_mb, storage_gb, ...(region === null ? {} : { region }) },
    image,
    environment,
    machine_id: sprite.machine_id,
    app_name: sprite.app_name,
    version: VERSION,
    created_at: isoTime(sprite.created_at),
    updated_at: isoTime(sprite.updated_at),
    ...(sprite.started_at === null ? {} : { last_running_at: isoTime(sprite.started_at) }),
  };
}

/** How many of an organization's sprites are in each status. */
export function statusCounts(
  states: readonly { state: MachineState | null; sprites: number }[],
): Record<Status, number> {
  const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<Status, number>;
  for (const { state, sprites } of states) counts[statusOf(state)] += sprites;
  return counts;
}
