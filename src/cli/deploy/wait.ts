/** Waits for machines of a deploy, and shows their health meanwhile. */
import { setTimeout } from "node:timers/promises";
import type { Machine } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { machineFailed } from "./failure.ts";
import { failingChecks, healthOf } from "./health.ts";
import type { Place } from "./place.ts";

const LOOK_MS = 250;
const LEAST_LOOKS = 2;

/**
 * Waits until the machine ran for a while without an exit, with all checks passing; a single poll is not enough,
 * because a crashing program also runs for a moment. Fails with the reason and the log.
 */
export async function untilHealthy(place: Place, launch: Machine, signal?: AbortSignal): Promise<void> {
  const { status, stable_ms } = place;
  const name = nameOf(launch);
  let passing = { since: 0, looks: 0 };
  try {
    await looking(place, launch, signal, async (machine, now) => {
      const { status: health, text, reason } = healthOf(machine, launch);
      if (health === "failed") throw await machineFailed(place, launch, { reason: reason ?? text });
      if (machine.instance_id !== launch.instance_id) throw await machineFailed(place, launch, { reason: REPLACED });
      if (health === "asleep") return true;
      passing =
        health === "passing" ? { since: passing.since || now, looks: passing.looks + 1 } : { since: 0, looks: 0 };
      status.set(name, text);
      return passing.looks >= LEAST_LOOKS && now - passing.since >= stable_ms;
    });
  } finally {
    status.end(name);
  }
}

const REPLACED = "it was updated by another request during the deploy";

/** Waits until the machine's program has exited. */
export async function untilEnded(place: Place, launch: Machine): Promise<Machine> {
  let ended = launch;
  try {
    await looking(place, launch, undefined, async (machine) => {
      ended = machine;
      place.status.set(nameOf(launch), machine.state);
      return ["stopped", "failed", "destroyed"].includes(machine.state);
    });
  } finally {
    place.status.end(nameOf(launch));
  }
  return ended;
}

const nameOf = ({ name, id }: Machine): string => `${name} (${id})`;

/** Polls a machine until `isDone`, up to the deploy's timeout. */
async function looking(
  place: Place,
  launch: Machine,
  signal: AbortSignal | undefined,
  isDone: (machine: Machine, now: number) => Promise<boolean>,
): Promise<void> {
  const { context, app_name, wait_ms } = place;
  const params = { app_name, machine_id: launch.id };
  const stop = AbortSignal.any([place.lease.signal, ...(signal ? [signal] : [])]);
  const until = systemClock.monotonic() + wait_ms;
  for (;;) {
    stop.throwIfAborted();
    const machine = await context.client
      .call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {} })
      .catch(async (thrown: unknown) => {
        if (!(thrown instanceof ClientError && thrown.http === 404)) throw thrown;
        throw await machineFailed(place, launch, { reason: "it was destroyed during the deploy" });
      });
    const now = systemClock.monotonic();
    if (await isDone(machine, now)) return;
    if (now >= until) throw await machineFailed(place, launch, { reason: lateReason(machine, wait_ms) });
    await setTimeout(LOOK_MS, undefined, { signal: stop }).catch(() => stop.throwIfAborted());
  }
}

function lateReason({ state, checks }: Machine, wait_ms: number): string {
  const [first] = failingChecks(checks);
  const why = first ? `check ${first.name} is ${first.status}: ${first.output}` : `it is ${state}`;
  return `it was not healthy after ${Math.round(wait_ms / 1000)} s (${why})`;
}
