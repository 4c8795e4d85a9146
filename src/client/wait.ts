import type { Machine } from "./api.ts";
import { type Client, ClientError } from "./client.ts";

export interface WaitOptions {
  /** Gives up after so long; five minutes when left out. */
  timeout_s?: number;
  signal?: AbortSignal;
}

interface Place {
  app_name: string;
  machine_id: string;
}

/** The longest the platform lets one request wait. */
const LONGEST_S = 60;

/**
 * Waits until a machine is in one of the states, however long that takes within the timeout, and answers the machine.
 * `settled` is any state it rests in, `healthy` is running with every check passing. Fails with the reason when the
 * machine fails and that was not waited for.
 */
export async function waitForMachine(
  client: Client,
  place: Place,
  states: readonly string[],
  { timeout_s = 300, signal }: WaitOptions = {},
): Promise<Machine> {
  const deadline = AbortSignal.timeout(timeout_s * 1000);
  const both = signal ? AbortSignal.any([deadline, signal]) : deadline;
  try {
    await reached(client, place, states, both);
  } catch (thrown) {
    if (!deadline.aborted) throw thrown;
    throw new ClientError(408, { error: `${place.machine_id} is not ${states.join(" or ")} after ${timeout_s} s` });
  }
  const machine = await read(client, place, signal);
  if (machine.state === "failed" && !states.includes("failed") && !states.includes("settled")) throw failed(machine);
  return machine;
}

/** One request after the other, each as long as the platform allows. */
async function reached(client: Client, place: Place, states: readonly string[], signal: AbortSignal): Promise<void> {
  for (;;) {
    const { instance_id } = await read(client, place, signal);
    const query = { state: [...states, "failed"], instance_id, timeout: String(LONGEST_S) };
    try {
      await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", { params: place, query, signal });
      return;
    } catch (thrown) {
      if (!(thrown instanceof ClientError && thrown.http === 408)) throw thrown;
    }
  }
}

const read = (client: Client, params: Place, signal: AbortSignal | undefined): Promise<Machine> =>
  client.call("GET /v1/apps/:app_name/machines/:machine_id", { params, query: {}, ...(signal ? { signal } : {}) });

function failed({ id, events }: Machine): ClientError {
  const request = (events[0] as { request?: { error?: string; reason?: string } } | undefined)?.request;
  const why = request?.error ?? request?.reason;
  return new ClientError(500, { error: `machine ${id} failed${why ? `: ${why}` : ""}` });
}
