/** The list of sprites as a live stream: each one's state, then every change. */
import type { Bus } from "#core/bus.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import type { StreamItem } from "#http/stream.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import { statusCounts } from "./responses.ts";
import type { Org } from "./service.ts";
import type { SpriteStore } from "./store.ts";
import { type SpriteView, statusOf } from "./types.ts";

interface WatchParts {
  store: SpriteStore;
  bus: Bus<MachineUpdate>;
  clock: Clock;
}

export async function* watchSprites(
  { store, bus, clock }: WatchParts,
  org: Org,
  { prefix, most }: { prefix: string; most: number },
  signal: AbortSignal,
): AsyncGenerator<StreamItem[]> {
  const changed = new Set<string>();
  let woken = Promise.withResolvers<void>();
  const wake = (): void => woken.resolve();
  // Before the first read, so that no change in between is missed.
  const end = bus.subscribe(topics.org(org.id), ({ machine }) => {
    if (machine.config.metadata?.["sprite"] !== machine.name || !machine.name.startsWith(prefix)) return;
    changed.add(machine.name);
    wake();
  });
  signal.addEventListener("abort", wake, { once: true });
  const lines = async (sprites: readonly (SpriteView | string)[]): Promise<StreamItem[]> => {
    const counts = { name: org.slug, ...statusCounts(await store.states(org.id)) };
    const timestamp = isoTime(clock.now());
    return sprites.map((sprite) => ({ data: { ...lineOf(sprite), timestamp, org: counts } }));
  };
  try {
    const first = await store.list(org.id, { prefix, after: "", limit: Math.min(most, SPRITE_LIMITS.sprites_page) });
    yield await lines(first);
    while (!signal.aborted) {
      if (changed.size === 0) await woken.promise;
      woken = Promise.withResolvers();
      if (signal.aborted) return;
      const names = [...changed];
      changed.clear();
      yield await lines(await Promise.all(names.map(async (name) => (await store.find(org.id, name)) ?? name)));
    }
  } finally {
    end();
    signal.removeEventListener("abort", wake);
  }
}

/** One that is not there any more is `deleted`. */
function lineOf(sprite: SpriteView | string): object {
  if (typeof sprite === "string") return { name: sprite, status: "deleted" };
  const { name, state, machine_state, started_at } = sprite;
  const gone = state === "deleting" || machine_state === "destroyed";
  return {
    name,
    status: gone ? "deleted" : statusOf(machine_state),
    ...(started_at === null ? {} : { last_running_at: isoTime(started_at) }),
  };
}
