/** The machine of a sprite: its config, and how it is woken. */
import { ApiError, fail } from "#core/errors.ts";
import { type Ids, repeatableIds } from "#core/ids.ts";
import { SPRITE_LABELS_KEY } from "#core/sprite-labels.ts";
import type { Waits } from "#machines/events/wait.ts";
import type { Actor } from "#machines/inputs.ts";
import { refOf } from "#machines/lifecycle/phases.ts";
import type { Ref } from "#machines/runtime/driver.ts";
import type { MachineService } from "#machines/service.ts";
import type { Machine, MachineConfig } from "#machines/types.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import type { Sprite } from "./types.ts";

/** Process 1 starts this and reaps what commands leave behind. */
const IDLE = ["sleep", "infinity"];

export function machineConfig({ name, settings, first_labels }: Sprite): MachineConfig {
  const { image, cpus, memory_mb, storage_gb, environment } = settings;
  return {
    image,
    env: environment,
    guest: { cpu_kind: "shared", cpus, memory_mb },
    init: { exec: IDLE },
    // A sleeping process ignores SIGINT as the first of its namespace would; nothing needs time to stop.
    stop_config: { signal: "SIGKILL" },
    restart: { policy: "always" },
    rootfs: { persist: "always", size_gb: storage_gb },
    dns: { hostname: name },
    metadata: { sprite: name, [SPRITE_LABELS_KEY]: labelsText(first_labels) },
  };
}

export const labelsText = (labels: readonly string[]): string => labels.join(",");

/** Ids of everything that is made for a sprite: the same ones in every attempt, of which the first is its machine's. */
export const idsOf = ({ id, created_at }: Pick<Sprite, "id" | "created_at">): Ids =>
  repeatableIds(Buffer.from(`sprite ${id}`), created_at);

const MACHINE_ID_DIGITS = 14;
export const machineIdOf = (sprite: Pick<Sprite, "id" | "created_at">): string => idsOf(sprite).hex(MACHINE_ID_DIGITS);

interface WakeParts {
  machines: MachineService;
  waits: Waits;
  ids: Ids;
}

const never = new AbortController().signal;

/** The platform's own changes of a sprite's machine. */
export const actorFor = (ids: Ids, source: "proxy" | "policy", reason: string): Actor => ({
  name: "sprites",
  ids,
  source,
  reason,
});

/** Starts or resumes the machine unless it runs. Fails as the start does. */
export async function awake(
  { machines, waits, ids }: WakeParts,
  sprite: Pick<Sprite, "app_id" | "machine_id" | "name">,
  signal: AbortSignal = never,
): Promise<{ machine: Machine; ref: Ref }> {
  const { app_id, machine_id: id, name } = sprite;
  for (let attempt = 0; attempt < WAKE_ATTEMPTS; attempt++) {
    const machine = await machines.get(app_id, id);
    const ref = refOf(machine);
    if (machine.state === "started" && ref) return { machine, ref };
    if (machine.state !== "starting") await machines.start(id, actorFor(ids, "proxy", "the sprite is used"));
    const timeout_s = SPRITE_LIMITS.sprite_wake_ms / 1000;
    const { state } = await waits.wait(id, { states: ["started", "failed"], timeout_s }, signal);
    if (state === "failed") await refuse(machines, app_id, id, name);
  }
  fail("wrong_state", `sprite ${name} does not stay awake: its machine ${id} ends as soon as it has started`);
}

/** It may be put to sleep, or stop, between two looks. */
const WAKE_ATTEMPTS = 5;

async function refuse(machines: MachineService, app_id: string, id: string, name: string): Promise<never> {
  const { events } = await machines.get(app_id, id);
  const reason = events.find(({ status }) => status === "failed")?.request?.error;
  fail("wrong_state", `sprite ${name} could not be started: ${reason ?? "see the events of its machine"}`, {
    facts: { machine_id: id },
  });
}

/** What a caller is told of a machine that could not be made. */
export const isRefusal = (thrown: unknown): thrown is ApiError => thrown instanceof ApiError && thrown.http < 500;
