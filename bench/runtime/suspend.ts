/** One suspend and resume of a machine, over the API, in milliseconds. */
import { setTimeout as pause } from "node:timers/promises";
import type { Hangar } from "./hangar.ts";

export type SuspendKind = "snapshot" | "freeze";

/** What the API shows of a machine. */
interface Shown {
  state: string;
  events: { request?: { reason?: string; suspend?: string } }[];
}

/** Before it, so that the machine has done what it does after a start. */
const SETTLE_MS = 150;

export async function suspendAndResume(
  { ask, wait }: Hangar,
  id: string,
  kind: SuspendKind,
): Promise<{ suspend: number; resume: number } | { refused: string }> {
  await pause(SETTLE_MS);
  const began = performance.now();
  await ask("POST", `/v1/apps/bench/machines/${id}/suspend`);
  await wait(id, "settled");
  const frozen = performance.now();
  const { state, events } = JSON.parse(await ask("GET", `/v1/apps/bench/machines/${id}`)) as Shown;
  if (state !== "suspended" || events[0]?.request?.suspend !== kind)
    return { refused: events.find(({ request }) => request?.reason)?.request?.reason ?? state };
  const waking = performance.now();
  await ask("POST", `/v1/apps/bench/machines/${id}/start`);
  await wait(id, "started");
  return { suspend: frozen - began, resume: performance.now() - waking };
}
